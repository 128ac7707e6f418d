//! The contract suite of `bursar-testkit` for every transport, and for the local one under every `sh` hosts have.

mod contract {
    use std::path::Path;
    use std::sync::Arc;

    use bursar_local::LocalHost;
    use bursar_testkit::contract::{Fixture, Folders, required};
    use bursar_transport::FollowEngine;

    #[allow(clippy::unused_async, reason = "other transports connect here")]
    async fn local() -> Fixture {
        let folders = Folders::new();
        let host = LocalHost::new().envs(folders.variables()).env_remove("BURSAR_RUN");
        folders.with(Arc::new(host))
    }

    /// A host where `sh` is `program`, for the scripts, for the holder and for agents.
    fn under(program: &Path, applets: &[&str]) -> Fixture {
        let folders = Folders::new();
        folders.install(program, applets);
        let sh = folders.root.path().join("bin/sh");
        let host = LocalHost::new().shell(sh, ["-s"]).envs(folders.variables());
        folders.with(Arc::new(host))
    }

    bursar_testkit::contract!(local, super::local);

    macro_rules! shell {
        ($name:ident, $package:literal, $applets:expr) => {
            mod $name {
                #[allow(clippy::unused_async, reason = "the suite wants a future")]
                pub(super) async fn host() -> super::Fixture {
                    super::under(&super::required(stringify!($name), $package), $applets)
                }
                bursar_testkit::contract!(as_sh, super::host);
            }
        };
    }

    shell!(dash, "dash", &["sh"]);
    shell!(bash, "bash", &["sh"]);
    shell!(mksh, "mksh", &["sh"]);
    // Its own tools as well, since they lack options that others have.
    shell!(
        busybox,
        "busybox",
        &[
            "sh", "awk", "cat", "cmp", "cut", "date", "find", "grep", "head", "ln", "ls", "mkdir", "mkfifo",
            "mv", "od", "rm", "setsid", "sleep", "sort", "tail", "tr", "wc",
        ]
    );

    async fn with_python() -> Fixture {
        let _python = required("python3", "python3");
        let fixture = local().await;
        with_engine(fixture, FollowEngine::Python3)
    }

    async fn with_sh() -> Fixture {
        with_engine(local().await, FollowEngine::Sh)
    }

    fn with_engine(mut fixture: Fixture, engine: FollowEngine) -> Fixture {
        fixture.holder = fixture.holder.clone().with_engine(engine);
        fixture
    }

    bursar_testkit::contract!(followed_by_python, super::with_python, only following, holding);
    bursar_testkit::contract!(followed_by_sh, super::with_sh, only following, holding);
}
