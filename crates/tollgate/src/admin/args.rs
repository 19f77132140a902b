//! The connection flags of every admin command.

use std::path::PathBuf;

use anyhow::{Result, anyhow};

use super::admin_client::AdminClient;
use super::first_token;
use crate::client::{ApiClient, BearerToken, ServerUrl, TlsTrust};

/// Default address of the admin listener.
pub const DEFAULT_ADMIN_URL: &str = "http://127.0.0.1:8090";

/// The server, and how to connect to it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// The admin listener: http://HOST:PORT, https://HOST:PORT, unix:/path [default: http://127.0.0.1:8090]
    #[arg(long, value_name = "URL", env = "TOLLGATE_URL", hide_env_values = true)]
    url: Option<String>,
    /// Send the first token in this file [or env: TOLLGATE_TOKEN; on the server's machine, the token file of its first
    /// start]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Trust the CA certificates in this file (PEM) instead of the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Client certificate (PEM), for servers that require one
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

/// A server, and a namespace on it.
#[derive(Clone, Debug, clap::Args)]
pub struct ScopeArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The namespace [default: the only one of the token, or `default`]
    #[arg(long, value_name = "NS", help_heading = "Server")]
    namespace: Option<String>,
}

/// A server, and all namespaces unless one is named.
#[derive(Clone, Debug, clap::Args)]
pub struct EveryScopeArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Only this namespace [default: all namespaces of the token]
    #[arg(long, value_name = "NS", help_heading = "Server")]
    namespace: Option<String>,
}

/// A server, and the output format.
#[derive(Clone, Debug, clap::Args)]
pub struct ServerReadArgs {
    /// Print the API's JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// A namespace of a server, and the output format.
#[derive(Clone, Debug, clap::Args)]
pub struct ScopeReadArgs {
    /// Print the API's JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub scope: ScopeArgs,
}

impl EveryScopeArgs {
    /// A client of the server. Nothing is sent yet.
    pub fn admin(&self) -> Result<AdminClient> {
        self.server.within(self.namespace.clone())
    }

    /// True if one namespace is named.
    pub fn is_one(&self) -> bool {
        self.namespace.is_some()
    }
}

impl ServerArgs {
    /// The server at a URL, with the system's certificates.
    pub fn at(url: &str, token_file: Option<PathBuf>) -> ServerArgs {
        ServerArgs { url: Some(url.to_owned()), token_file, ca: None, cert: None, key: None }
    }

    /// A client of the server. Nothing is sent yet.
    pub fn admin(&self) -> Result<AdminClient> {
        self.within(None)
    }

    fn within(&self, namespace: Option<String>) -> Result<AdminClient> {
        // An empty variable counts as unset, as for every setting.
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
    /// The namespace, if one is named.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// A client within the named namespace, or else in this one.
    pub fn admin_of(&self, otherwise: Option<String>) -> Result<AdminClient> {
        self.server.within(self.namespace.clone().or(otherwise))
    }

    /// A client of the server within the namespace. Nothing is sent yet.
    pub fn admin(&self) -> Result<AdminClient> {
        self.server.within(self.namespace.clone())
    }
}
