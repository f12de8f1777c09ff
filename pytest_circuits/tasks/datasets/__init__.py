"""Published data in local files: ARC, MIB, and the tables of EAP."""
