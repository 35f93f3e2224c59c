"""The commands of `expbench`, by what they are about; `flows.cli` puts them together."""
