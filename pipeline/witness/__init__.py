"""What a run does, seen from inside its Python processes; and runs with inputs moved from outside."""
