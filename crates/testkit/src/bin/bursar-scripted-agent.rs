//! The scripted agent as a program. See `bursar_testkit::scripted::play`.

use std::process::ExitCode;

fn main() -> ExitCode {
    bursar_testkit::scripted::play::main()
}
