"""The harness: runs agents on tasks, records what they do, holds them to their limits, takes what they hand in."""
