//! What decides: a rules file in this process, or a running server.
//!
//! A flag wins over the environment, also across the two: `--url` counts although `TOLLGATE_RULES` is set. clap's
//! conflicts do not distinguish flags from variables, so this module does.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use crate::admin::{DEFAULT_ADMIN_URL, first_token};
use crate::client::{ApiClient, BearerToken, ServerUrl, TlsTrust};

/// What decides.
#[derive(Clone, Debug)]
pub enum Decider {
    /// This process, by the rules of this file.
    Rules(PathBuf),
    /// A running server.
    Server(RemoteServer),
}

/// A running server, and how to connect to it.
#[derive(Clone, Debug)]
pub struct RemoteServer {
    target: ServerUrl,
    token_file: Option<PathBuf>,
    ca: Option<PathBuf>,
}

impl RemoteServer {
    /// A server at this URL.
    pub fn new(target: ServerUrl, token_file: Option<PathBuf>, ca: Option<PathBuf>) -> RemoteServer {
        RemoteServer { target, token_file, ca }
    }

    /// A client that has not connected yet.
    pub fn client(&self) -> Result<ApiClient> {
        let trust = TlsTrust { ca: self.ca.clone(), identity: None };
        let token = match BearerToken::find(self.token_file.as_deref())? {
            // A listener without authentication ignores the token.
            None if self.target.is_local() => first_token()?,
            token => token,
        };
        ApiClient::new(self.target.clone(), token, &trust)
    }
}

/// The flags and variables that select the decider.
#[derive(Debug)]
pub struct DeciderArgs {
    flags: Flags,
    /// Which of the two were given as flags.
    by_flag: ByFlag,
}

#[derive(Debug)]
struct ByFlag {
    rules: bool,
    url: bool,
}

/// The flags as clap sees them.
#[derive(Args, Debug)]
struct Flags {
    /// Decide in this process by this rules file; - reads standard input
    #[arg(long, value_name = "FILE", env = "TOLLGATE_RULES", hide_env_values = true)]
    rules: Option<PathBuf>,
    /// Ask a running server: http://HOST:PORT, https://HOST:PORT, unix:/path
    #[arg(long, value_name = "URL", env = "TOLLGATE_URL", hide_env_values = true)]
    url: Option<String>,
    /// Present the first token in this file to the server [or env: TOLLGATE_TOKEN]
    #[arg(long, value_name = "FILE", requires = "url", help_heading = "Server")]
    token_file: Option<PathBuf>,
    /// Trust the authorities in this file (PEM) instead of this machine's
    #[arg(long, value_name = "FILE", requires = "url", help_heading = "Server")]
    ca: Option<PathBuf>,
}

impl DeciderArgs {
    /// The selected decider; by default, the admin listener on this machine.
    pub fn decider_or_admin(&self) -> Result<Decider> {
        let DeciderArgs { flags: Flags { rules, url, token_file, ca }, .. } = self;
        if rules.is_some() || url.as_ref().is_some_and(|url| !url.is_empty()) {
            return self.decider();
        }
        let target = DEFAULT_ADMIN_URL.parse().map_err(|fault| anyhow!("{fault}"))?;
        Ok(Decider::Server(RemoteServer { target, token_file: token_file.clone(), ca: ca.clone() }))
    }

    /// The selected decider.
    pub fn decider(&self) -> Result<Decider> {
        let DeciderArgs { flags: Flags { rules, url, token_file, ca }, by_flag } = self;
        // An empty variable counts as unset, as for every setting.
        let url = url.as_ref().filter(|url| by_flag.url || !url.is_empty());
        match (rules, url) {
            (Some(_), Some(_)) if by_flag.rules == by_flag.url => {
                bail!("--rules and --url exclude each other: decide in this process, or ask a server")
            }
            (Some(rules), url) if url.is_none() || by_flag.rules => Ok(Decider::Rules(rules.clone())),
            (_, Some(url)) => {
                let target = url.parse().map_err(|fault| anyhow!("--url: {fault}"))?;
                Ok(Decider::Server(RemoteServer { target, token_file: token_file.clone(), ca: ca.clone() }))
            }
            _ => bail!("say what decides: --rules FILE in this process, or --url URL, a running server"),
        }
    }
}

impl Args for DeciderArgs {
    fn augment_args(command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::augment_args_for_update(command)
    }
}

impl FromArgMatches for DeciderArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<DeciderArgs, Error> {
        let by_flag = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
        let by_flag = ByFlag { rules: by_flag("rules"), url: by_flag("url") };
        Ok(DeciderArgs { flags: Flags::from_arg_matches(matches)?, by_flag })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = DeciderArgs::from_arg_matches(matches)?;
        Ok(())
    }
}
