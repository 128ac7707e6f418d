//! The debt ledger.
