"""The `causal` family (petri-bench): seeded mystery worlds over five simulations, and a blind harness to find out."""
