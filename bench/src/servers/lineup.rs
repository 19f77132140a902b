//! The candidates, and why others are missing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use tollgate_load::{LoadPlan, LoadRequest, Target};

use super::prepare::Programs;
use super::server::{PeerServer, Ready};
use crate::cores::{CoreRole, Cores};
use crate::report::progress;

/// Keys, unless a scenario says otherwise.
const KEYS: u64 = 100_000;

/// Duration of a proof.
const PROOF: Duration = Duration::from_millis(500);
/// Requests of 40 % of the limit that may pass meanwhile: two, and one of each window that begins.
const PROOF_ALLOWED: u64 = 4;

/// One line of the table: a server and what it is asked.
#[derive(Debug)]
pub struct Candidate {
    /// Its name in the tables.
    pub name: &'static str,
    /// Several candidates may share one.
    pub server: Rc<PeerServer>,
    /// The process of a store behind it, whose CPU time is counted apart.
    pub backend: Option<u32>,
    pub target: Target,
    pub request: LoadRequest,
    pub keys: u64,
    /// Checks in a request.
    pub checks: usize,
}

/// Starts a server and adds its candidates.
pub type StartPeer = fn(&mut Lineup<'_>) -> anyhow::Result<()>;

/// The candidates that could be started, and why others could not.
#[derive(Debug)]
pub struct Lineup<'a> {
    pub candidates: Vec<Candidate>,
    absent: Vec<String>,
    pub programs: Programs,
    /// Servers behind other servers.
    behind: Vec<Rc<PeerServer>>,
    cores: &'a Cores,
    folder: TempDir,
}

impl<'a> Lineup<'a> {
    /// An empty line-up.
    pub fn new(cores: &'a Cores) -> anyhow::Result<Lineup<'a>> {
        let (programs, folder) = (Programs::new()?, tempfile::tempdir()?);
        Ok(Lineup { candidates: Vec::new(), absent: Vec::new(), programs, behind: Vec::new(), cores, folder })
    }

    /// A candidate by name.
    pub fn of(&self, name: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.name == name)
    }

    /// Starts a server on the servers' core.
    pub fn server(&self, name: &str, command: Command, ready: Ready) -> anyhow::Result<Rc<PeerServer>> {
        self.start(name, command, ready, CoreRole::Server)
    }

    /// Starts one of our own programs behind all servers.
    pub fn upstream(&self, command: Command) -> anyhow::Result<Rc<PeerServer>> {
        self.start("upstream", command, Ready::Says, CoreRole::Upstream)
    }

    fn start(&self, name: &str, command: Command, ready: Ready, role: CoreRole) -> anyhow::Result<Rc<PeerServer>> {
        progress(&format!("  starting {name}"));
        let log = self.folder.path().join(format!("{}.log", name.replace([' ', '/'], "-")));
        Ok(Rc::new(PeerServer::start(command, ready, (self.cores, role), &log)?))
    }

    /// The same for a server that limits, once its answers are proven: `proof` is the request at a cost of which the
    /// limit holds two. A server that fails, allows everything or denies everything is not measured.
    pub fn join_proven(
        &mut self,
        name: &'static str,
        server: &Rc<PeerServer>,
        target: &str,
        request: LoadRequest,
        proof: &LoadRequest,
    ) -> anyhow::Result<&mut Candidate> {
        progress(&format!("  asking {name} for more than it may give"));
        let plan = LoadPlan {
            connections: 1,
            pipeline: 1,
            keys: 1,
            warm_up: Duration::ZERO,
            duration: PROOF,
            ..LoadPlan::default()
        };
        let outcome = tollgate_load::run(&Target::parse(target)?, proof, &plan, &mut |_| {})?;
        let (allowed, denied, errors) = (outcome.allowed, outcome.denied, outcome.errors.total());
        anyhow::ensure!(
            (1..=PROOF_ALLOWED).contains(&allowed) && denied > 0 && errors == 0,
            "its answers are wrong: of requests that each take 40 % of the limit it allowed {allowed}, denied {denied}, \
             and failed {errors}"
        );
        self.join(name, server, target, request)
    }

    /// One more candidate: a server, what it is asked, and where.
    pub fn join(
        &mut self,
        name: &'static str,
        server: &Rc<PeerServer>,
        target: &str,
        request: LoadRequest,
    ) -> anyhow::Result<&mut Candidate> {
        self.candidates.push(Candidate {
            name,
            server: Rc::clone(server),
            backend: None,
            target: Target::parse(target)?,
            request,
            keys: KEYS,
            checks: 1,
        });
        self.candidates.last_mut().context("it was just added")
    }

    /// Keeps a server running that stands behind another.
    pub fn keep(&mut self, server: Rc<PeerServer>) {
        self.behind.push(server);
    }

    /// Starts the peers that are available.
    pub fn attempt(&mut self, peers: &[(&str, StartPeer)]) {
        for (name, start) in peers {
            let started = start(self);
            self.excuse(name, started);
        }
    }

    /// Records why a candidate is not measured.
    pub fn excuse(&mut self, name: &str, started: anyhow::Result<()>) {
        if let Err(error) = started {
            progress(&format!("  {name}: not measured: {error:#}"));
            self.absent.push(format!("{name} ({error:#})"));
        }
    }

    /// A paragraph about missing candidates; empty if there are none.
    pub fn not_measured(&self) -> String {
        match self.absent.as_slice() {
            [] => String::new(),
            absent => format!("\n\nNot measured: {}.", absent.join("; ")),
        }
    }

    /// A folder that lasts as long as the servers.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file in it.
    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.path().join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, text)?;
        Ok(path)
    }
}
