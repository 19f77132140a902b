//! The proxies, and what each needs to run inside the directory of a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program;

/// The program behind a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyKind {
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

impl ProxyKind {
    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            ProxyKind::Nginx => "nginx",
            ProxyKind::Caddy => "caddy",
            ProxyKind::Haproxy => "haproxy",
            ProxyKind::Envoy => "envoy",
            ProxyKind::Traefik => "traefik",
        }
    }

    /// The path of its program. Panics if it is missing.
    pub fn program(self) -> PathBuf {
        program::named(self.name())
    }

    pub(super) fn config_name(self) -> &'static str {
        match self {
            ProxyKind::Nginx => "nginx.conf",
            ProxyKind::Caddy => "Caddyfile",
            ProxyKind::Haproxy => "haproxy.cfg",
            ProxyKind::Envoy => "envoy.yaml",
            ProxyKind::Traefik => "traefik-dynamic.yaml",
        }
    }

    /// Adapts the configuration so that two proxies can run side by side: no file outside the directory, and no port but
    /// those of the options.
    pub(super) fn adapt(self, config: &str, directory: &Path) -> String {
        match self {
            ProxyKind::Nginx => {
                let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|what| {
                    format!("  {what}_temp_path {};\n", directory.join(what).display()) // Debian's default belongs to root
                });
                config.replacen("http {\n", &format!("http {{\n  access_log off;\n{}", paths.concat()), 1)
            }
            ProxyKind::Caddy => format!("{{\n\tadmin off\n\tpersist_config off\n}}\n{config}"),
            ProxyKind::Haproxy | ProxyKind::Envoy | ProxyKind::Traefik => config.to_owned(),
        }
    }

    pub(super) fn arguments(self, command: &mut Command, config: &Path) {
        match self {
            // One process: children would outlive a killed parent.
            ProxyKind::Nginx => {
                let directory = config.parent().unwrap_or(config);
                let pid = format!("daemon off; master_process off; pid {}/pid;", directory.display());
                command.arg("-p").arg(directory).args(["-e", "stderr", "-g", &pid, "-c"]).arg(config)
            }
            ProxyKind::Caddy => command.args(["run", "--adapter", "caddyfile", "--config"]).arg(config),
            ProxyKind::Haproxy => command.args(["-db", "-f"]).arg(config),
            // Its listening port is not part of this file, but of the command in its first comment.
            ProxyKind::Traefik => {
                let text = fs::read_to_string(config).unwrap_or_default();
                let shown = text.split_whitespace().find(|word| word.starts_with("--entrypoints."));
                let shown = shown.expect("the configuration shows how Traefik is started");
                command.args([shown, "--global.checknewversion=false", "--global.sendanonymoususage=false"]);
                command.arg(format!("--providers.file.filename={}", config.display()))
            }
            ProxyKind::Envoy => {
                command.args(["--concurrency", "1", "--disable-hot-restart", "-l", "warning", "-c"]).arg(config)
            }
        };
    }
}
