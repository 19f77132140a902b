//! The programs that are measured: builds Tollgate, finds or installs the peers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow, bail, ensure};

use crate::report::progress;

/// It has no releases: the commit of January 2026.
const RATELIMIT: &str = "github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36";
const GUBERNATOR: &str = "github.com/gubernator-io/gubernator/v2/cmd/gubernator@v2.13.0";

/// The folders of programs.
#[derive(Debug)]
pub struct Programs {
    /// The folder of this program, where ours are built to.
    release: PathBuf,
    /// The target folder around it.
    target: PathBuf,
}

impl Programs {
    /// Looks where this program lies.
    pub fn new() -> anyhow::Result<Programs> {
        let this = std::env::current_exe().context("this program has a path")?;
        let release = this.parent().context("and lies in a folder")?.to_owned();
        let target = release.parent().context("which lies in the target folder")?.to_owned();
        Ok(Programs { release, target })
    }

    /// One of our own programs, built as this one was.
    pub fn build(&self, package: &str, program: &str) -> anyhow::Result<PathBuf> {
        progress(&format!("  building {program}"));
        let mut cargo = cargo();
        cargo.args(["build", "--locked", "--quiet", "--package", package, "--bin", program]);
        if !self.release.ends_with("debug") {
            cargo.arg("--release");
        }
        cargo.arg("--target-dir").arg(&self.target);
        succeed(&mut cargo)?;
        Ok(self.release.join(program))
    }

    /// Tollgate: the given one, or one built from here.
    pub fn tollgate(&self, given: Option<&Path>) -> anyhow::Result<PathBuf> {
        given.map_or_else(|| self.build("tollgate", "tollgate"), |program| Ok(program.to_owned()))
    }

    /// A peer that is there already: on PATH, in the folder that `TOLLGATE_PEERS` names, or installed before.
    pub fn found(&self, name: &str) -> Option<PathBuf> {
        let given = std::env::var_os("TOLLGATE_PEERS").map(PathBuf::from);
        let folders = given.into_iter().flat_map(|folder| [folder.join("bin"), folder]).chain([self.installed()]);
        on_path(name).or_else(|| folders.map(|folder| folder.join(name)).find(|file| file.is_file()))
    }

    /// throttlecrab-server: found, or installed into target/peers.
    pub fn throttlecrab(&self) -> anyhow::Result<PathBuf> {
        let (name, root) = ("throttlecrab-server", self.target.join("peers"));
        if let Some(found) = self.found(name) {
            return Ok(found);
        }
        progress("  installing throttlecrab-server into target/peers: three to five minutes, once");
        succeed(Command::new("script/setup").arg("--peers").current_dir(repository()))?;
        let mut cargo = cargo();
        cargo.args(["install", name, "--locked", "--quiet", "--root"]).arg(&root);
        succeed(cargo.arg("--target-dir").arg(root.join("build")))?;
        Ok(self.installed().join(name))
    }

    /// envoyproxy/ratelimit: found, or built into target/peers where Go is.
    pub fn ratelimit(&self) -> anyhow::Result<PathBuf> {
        match self.found("ratelimit") {
            Some(found) => Ok(found),
            None => self.go("service_cmd", RATELIMIT),
        }
    }

    /// gubernator: found, or built into target/peers where Go is.
    pub fn gubernator(&self) -> anyhow::Result<PathBuf> {
        self.go("gubernator", GUBERNATOR)
    }

    /// A program of a Go module.
    fn go(&self, name: &str, module: &str) -> anyhow::Result<PathBuf> {
        if let Some(found) = self.found(name) {
            return Ok(found);
        }
        let go = on_path("go").context("neither on PATH, nor is there a Go to build it")?;
        progress(&format!("  building {module} into target/peers: a minute or two, once"));
        let mut go = Command::new(go);
        go.args(["install", module]).env("GOBIN", self.installed()).current_dir(repository());
        // Go prints hosts and folders of this machine, which do not belong into a report.
        succeed(&mut go).map_err(|error| {
            progress(&format!("  {error:#}"));
            anyhow!("neither on PATH, nor could go install it")
        })?;
        Ok(self.installed().join(name))
    }

    fn installed(&self) -> PathBuf {
        self.target.join("peers/bin")
    }
}

/// A program by its name, if it is installed.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    // Debian installs servers outside of the PATH of users.
    let system = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&folders).chain(system).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn repository() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repository());
    command
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().find(|line| line.starts_with("error")).or_else(|| said.lines().last());
    match error {
        Some(error) if !output.status.success() => bail!("{command:?}: {error}"),
        _ => ensure!(output.status.success(), "{command:?} ended with {}", output.status),
    }
    Ok(())
}
