//! From bytes to agent events: cutting lines, decoding dialects, encoding messages.
