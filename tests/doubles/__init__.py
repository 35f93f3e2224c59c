"""Stand-ins that tests, benchmarks and demonstrations start in a checkout; no part of what is shipped."""
