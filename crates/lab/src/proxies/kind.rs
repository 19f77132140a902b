//! Which proxy, and what each needs to run inside a directory of a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program;

/// The program behind a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `nginx`.
    Nginx,
    /// `caddy`.
    Caddy,
    /// `haproxy`.
    Haproxy,
    /// `envoy`.
    Envoy,
    /// `traefik`.
    Traefik,
}

impl Kind {
    /// What its program is called.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Nginx => "nginx",
            Kind::Caddy => "caddy",
            Kind::Haproxy => "haproxy",
            Kind::Envoy => "envoy",
            Kind::Traefik => "traefik",
        }
    }

    /// Where its program is. Panics when it is nowhere.
    pub fn program(self) -> PathBuf {
        program::named(self.name())
    }

    pub(super) fn config_name(self) -> &'static str {
        match self {
            Kind::Nginx => "nginx.conf",
            Kind::Caddy => "Caddyfile",
            Kind::Haproxy => "haproxy.cfg",
            Kind::Envoy => "envoy.yaml",
            Kind::Traefik => "traefik-dynamic.yaml",
        }
    }

    /// The configuration, with what keeps two of a kind out of each other's way: no file outside the directory, and no
    /// port but those of the plan.
    pub(super) fn adapt(self, config: &str, directory: &Path) -> String {
        match self {
            Kind::Nginx => {
                let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|what| {
                    format!("  {what}_temp_path {};\n", directory.join(what).display()) // Debian's own are root's
                });
                config.replacen("http {\n", &format!("http {{\n  access_log off;\n{}", paths.concat()), 1)
            }
            Kind::Caddy => format!("{{\n\tadmin off\n\tpersist_config off\n}}\n{config}"),
            Kind::Haproxy | Kind::Envoy | Kind::Traefik => config.to_owned(),
        }
    }

    pub(super) fn arguments(self, command: &mut Command, config: &Path) {
        match self {
            // One process: children of one that is killed would live on.
            Kind::Nginx => {
                let directory = config.parent().unwrap_or(config);
                let pid = format!("daemon off; master_process off; pid {}/pid;", directory.display());
                command.arg("-p").arg(directory).args(["-e", "stderr", "-g", &pid, "-c"]).arg(config)
            }
            Kind::Caddy => command.args(["run", "--adapter", "caddyfile", "--config"]).arg(config),
            Kind::Haproxy => command.args(["-db", "-f"]).arg(config),
            // Where it listens is no part of this file: the command that a comment in there shows says so.
            Kind::Traefik => {
                let text = fs::read_to_string(config).unwrap_or_default();
                let shown = text.split_whitespace().find(|word| word.starts_with("--entrypoints."));
                let shown = shown.expect("the configuration shows how Traefik is started");
                command.args([shown, "--global.checknewversion=false", "--global.sendanonymoususage=false"]);
                command.arg(format!("--providers.file.filename={}", config.display()))
            }
            Kind::Envoy => {
                command.args(["--concurrency", "1", "--disable-hot-restart", "-l", "warning", "-c"]).arg(config)
            }
        };
    }
}
