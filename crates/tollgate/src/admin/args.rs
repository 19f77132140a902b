//! The flags that every command of the admin API takes.

use std::path::PathBuf;

use anyhow::{Result, anyhow};

use super::admin_client::AdminClient;
use super::first_token;
use crate::client::{ApiClient, BearerToken, ServerUrl, TlsTrust};

/// Where a server's admin listener is by default.
pub const DEFAULT_ADMIN_URL: &str = "http://127.0.0.1:8090";

/// Which server, and how it is spoken to.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// The admin listener: http://HOST:PORT, https://HOST:PORT, unix:/path [default: http://127.0.0.1:8090]
    #[arg(long, value_name = "URL", env = "TOLLGATE_URL", hide_env_values = true)]
    url: Option<String>,
    /// Present the first token in this file [or env: TOLLGATE_TOKEN; on the server's machine, what its first start wrote]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Trust the authorities in this file (PEM) instead of this machine's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Present this certificate (PEM), where the server asks for one
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

/// The same for what lives in a namespace.
#[derive(Clone, Debug, clap::Args)]
pub struct ScopeArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Look there [default: the only one of the token, or `default`]
    #[arg(long, value_name = "NS", help_heading = "Server")]
    namespace: Option<String>,
}

/// The same for lists that cover all namespaces, unless one is named.
#[derive(Clone, Debug, clap::Args)]
pub struct EveryScopeArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Only of this namespace [default: all that the token is for]
    #[arg(long, value_name = "NS", help_heading = "Server")]
    namespace: Option<String>,
}

/// A server, and the format of what it says.
#[derive(Clone, Debug, clap::Args)]
pub struct ServerReadArgs {
    /// Print the API's JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The same for what lives in a namespace.
#[derive(Clone, Debug, clap::Args)]
pub struct ScopeReadArgs {
    /// Print the API's JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub scope: ScopeArgs,
}

impl EveryScopeArgs {
    /// The API of that server. Nothing is sent yet.
    pub fn admin(&self) -> Result<AdminClient> {
        self.server.within(self.namespace.clone())
    }

    /// True if one namespace was named.
    pub fn is_one(&self) -> bool {
        self.namespace.is_some()
    }
}

impl ServerArgs {
    /// The API of that server. Nothing is sent yet.
    pub fn admin(&self) -> Result<AdminClient> {
        self.within(None)
    }

    fn within(&self, namespace: Option<String>) -> Result<AdminClient> {
        // A variable that is set to nothing counts as not set, as for every setting.
        let url = self.url.as_deref().filter(|url| !url.is_empty()).unwrap_or(DEFAULT_ADMIN_URL);
        let target: ServerUrl = url.parse().map_err(|fault| anyhow!("--url: {fault}"))?;
        let token = match BearerToken::find(self.token_file.as_deref())? {
            None if target.is_local() => first_token::find()?,
            token => token,
        };
        let identity = self.cert.clone().zip(self.key.clone());
        let has_token = token.is_some();
        let client = ApiClient::new(target, token, &TlsTrust { ca: self.ca.clone(), identity })?;
        Ok(AdminClient { client, namespace, has_token })
    }
}

impl ScopeArgs {
    /// The namespace that was named.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The API within the namespace that was named, or else in this one.
    pub fn admin_of(&self, otherwise: Option<String>) -> Result<AdminClient> {
        self.server.within(self.namespace.clone().or(otherwise))
    }

    /// The API of that server, within that namespace. Nothing is sent yet.
    pub fn admin(&self) -> Result<AdminClient> {
        self.server.within(self.namespace.clone())
    }
}
