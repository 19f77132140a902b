//! The routes file: what is forwarded where, on whose behalf, and how the upstreams are treated.
//!
//! ```yaml
//! upstreams:
//!   orders: { servers: [http://10.0.0.7:3000, http://10.0.0.8:3000] }
//! routes:
//!   - { host: api.example.com, path: /orders/*, upstream: orders, strip_prefix: /orders }
//! ```
//!
//! | file | reads |
//! |---|---|
//! | `route` | conditions and treatment of requests |
//! | `upstream` | servers, balancing, health checks, timeouts |
//! | `priority` | the class of a request |
//! | `refusals` | how refusals look |
//! | `protection` | what keeps an upstream from more work than it can do |
//! | `header_conditions` | fields that a request must have |
//! | `header_edits` | fields that are set or removed |
//! | `pem_file` | certificates and keys |
//! | `unreachable` | routes that no request reaches |
//! | `upstream_url` | the URL of a server |

mod header_conditions;
mod header_edits;
mod pem_file;
mod priority;
mod protection;
mod read;
mod refusals;
mod route;
mod unreachable;
mod upstream;
mod upstream_url;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use tollgate_cost::graphql::PersistedQueries;
use tollgate_cost::llm::Tokenizer;
use tollgate_identity::IdentitySpec;
use tollgate_overload::Priorities;
use tollgate_rules::problem::ParseError;

pub(crate) use header_conditions::have_all;
pub use header_edits::HeaderEdits;
pub use pem_file::{ClientCertificate, PemFile};
pub use priority::{PriorityCase, PriorityClass, PrioritySpec};
pub use protection::ProtectionSpec;
pub use read::{read, read_bytes};
pub use refusals::{HtmlPage, RefusalBody, RefusalSpec};
pub use route::{ForwardedStyle, PathParameters, RouteSpec, TraceStyle};
pub use unreachable::UnreachableRoute;
pub use upstream::{Balance, HealthSpec, TimeoutSpec, UpstreamSpec};
pub use upstream_url::{ServerScheme, UpstreamUrl};

/// A routes file. Every value is validated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GatewaySpec {
    /// How callers prove who they are.
    pub identity: IdentitySpec,
    /// Classes of importance.
    pub priorities: Priorities,
    /// Servers by name.
    pub upstreams: Vec<UpstreamSpec>,
    /// Routes; the first that matches counts.
    pub routes: Vec<RouteSpec>,
}

impl GatewaySpec {
    /// Everything goes to these servers, as with `--upstream`.
    pub fn all_to(servers: Vec<UpstreamUrl>) -> GatewaySpec {
        let upstream = UpstreamSpec { servers, ..UpstreamSpec::named("upstream") };
        let route = RouteSpec { upstream: upstream.name.clone(), ..RouteSpec::default() };
        GatewaySpec { upstreams: vec![upstream], routes: vec![route], ..GatewaySpec::default() }
    }

    /// Reads the authorities and client certificates that upstreams name, relative to the folder of the routes file.
    pub fn load_tls_files(&mut self, folder: &Path) -> Result<()> {
        for upstream in &mut self.upstreams {
            let name = upstream.name.clone();
            for (_, file) in upstream.tls_files_mut() {
                file.load(folder).with_context(|| format!("upstream {name}"))?;
            }
        }
        Ok(())
    }

    /// The files that [`load_tls_files`](GatewaySpec::load_tls_files) reads.
    pub fn tls_files(&self, folder: &Path) -> Vec<PathBuf> {
        let files = self.upstreams.iter().flat_map(UpstreamSpec::tls_files);
        files.map(|file| folder.join(&file.path)).collect()
    }

    /// Loads the files that costs of routes name, relative to the folder of the routes file: lists of persisted queries,
    /// vocabularies of models.
    pub fn load_cost_files(&mut self, folder: &Path) -> Result<()> {
        for cost in self.routes.iter_mut().filter_map(|route| route.cost.as_mut()) {
            if cost.files().next().is_some() {
                let cost = Arc::make_mut(cost);
                cost.load_persisted(|path| read_file(&folder.join(path), PersistedQueries::read))?;
                cost.load_vocabulary(|path| read_file(&folder.join(path), Tokenizer::read))?;
            }
        }
        Ok(())
    }

    /// The files that [`load_cost_files`](GatewaySpec::load_cost_files) reads.
    pub fn cost_files(&self, folder: &Path) -> Vec<PathBuf> {
        let costs = self.routes.iter().filter_map(|route| route.cost.as_deref());
        costs.flat_map(|cost| cost.files()).map(|path| folder.join(path)).collect()
    }
}

fn read_file<T>(path: &Path, parse: fn(&str) -> Result<T, ParseError>) -> Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).map_err(|error| anyhow!("{}: {}; {}", path.display(), error.message, error.help))
}
