//! A panic is a bug in bursar, and is said to be one.

use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};

use crate::{escape, exit, terminal};

/// Ends the process with its own exit code and a message at the first panic of any thread.
///
/// The agent and the run are untouched: both are picked up as after a `kill -9`.
pub(crate) fn install(log_file: Option<PathBuf>) {
    std::panic::set_hook(Box::new(move |info| {
        terminal::restore();
        let text = message(info, log_file.as_deref());
        // Neither the lock of stderr nor its reader can be relied on here.
        let _nobody_may_read = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
        std::process::exit(i32::from(exit::BUG));
    }));
}

fn message(info: &PanicHookInfo<'_>, log_file: Option<&Path>) -> String {
    let payload = info.payload();
    let what = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let place =
        info.location().map_or_else(String::new, |place| format!(" ({}:{})", place.file(), place.line()));
    let log = match log_file {
        Some(path) => format!("its log is {}", path.display()),
        None => "`--log-file FILE -vv` keeps a log of it when it happens again".to_owned(),
    };
    format!(
        "\nerror: bursar has a bug: {}{place}\nhint: please report it; {log}\n\
         hint: a run goes on without bursar: `bursar ls` names it, `bursar attach RUN` picks it up\n",
        escape::line(what)
    )
}
