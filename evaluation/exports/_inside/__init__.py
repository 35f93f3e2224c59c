"""Programs that are copied into exported tasks; they need nothing but Python's standard library (or Inspect itself)."""
