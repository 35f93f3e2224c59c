"""Green and white agents over the A2A protocol, version 1.0 (PRBench 3.4, B.2)."""
