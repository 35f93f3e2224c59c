"""Stage 2.1 (EXP-Bench 3.2): from a PDF to a structured document, and from the document to draft tasks."""
