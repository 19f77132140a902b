//! An empty data directory, made once per process and copied for each server: `initdb` takes a second.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::program;
use crate::process;

/// The superuser, without a password: the servers listen on loopback, for as long as a test.
pub(super) const USER: &str = "postgres";

/// Copies an empty data directory to `data`.
pub(super) fn copy_to(data: &Path) {
    program::run(Path::new("cp"), &["-R".as_ref(), template().as_os_str(), data.as_os_str()]);
}

fn template() -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let directory = process::directory().keep(); // until the process is over
        program::hand_over(&directory).expect("a directory can be handed over");
        let template = directory.join("template");
        let arguments = ["-U", USER, "--auth=trust", "--no-sync", "--locale=C", "--encoding=UTF8", "--wal-segsize=1"];
        let place = [OsStr::new("-D"), template.as_os_str()];
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).chain(place).collect();
        program::run(&program::named("initdb"), &arguments);
        template
    })
}
