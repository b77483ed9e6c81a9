//! Deterministic parallel discrete-event engine: event queues, partitions and lookahead windows.
