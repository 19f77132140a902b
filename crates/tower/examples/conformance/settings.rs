//! The settings of the suite, from the environment.

use tollgate_tower::client::{Client, ClientConfig, Limit, OnError, Span};
use tollgate_tower::{Cidr, TollgateLayer};

use crate::AnyError;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The client of both commands.
pub fn client() -> Result<Client, AnyError> {
    let mut config = ClientConfig::from_env();
    if let Some(policy) = variable("CONFORMANCE_ON_ERROR") {
        config = config.on_error(match policy.as_str() {
            "open" => OnError::Open,
            "closed" => OnError::Closed,
            "local" => OnError::Local,
            other => return Err(format!("CONFORMANCE_ON_ERROR: {other}").into()),
        });
    }
    if let Some(limit) = variable("CONFORMANCE_FALLBACK") {
        config = config.fallback(fallback(&limit).ok_or_else(|| format!("CONFORMANCE_FALLBACK: {limit}"))?);
    }
    if let Some(millis) = variable("CONFORMANCE_TIMEOUT_MS") {
        config = config.timeout(Span::from_millis(millis.parse()?));
    }
    Ok(Client::new(config)?)
}

/// `5/1m`
fn fallback(text: &str) -> Option<Limit> {
    let (count, window) = text.split_once('/')?;
    let (number, unit) = window.split_at_checked(window.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    Limit::token_bucket(count.parse().ok()?, Span::from_secs(number.parse::<u64>().ok()? * seconds)).ok()
}

/// The settings of an application.
pub fn configured(limits: TollgateLayer) -> Result<TollgateLayer, AnyError> {
    let networks = variable("CONFORMANCE_TRUSTED_PROXIES").unwrap_or_default();
    let networks = networks.split(',').map(str::trim).filter(|network| !network.is_empty());
    let networks = networks.map(|network| Cidr::parse(network).map_err(|error| error.to_string()));
    let limits = limits.trusted_proxies(networks.collect::<Result<Vec<_>, _>>()?);
    Ok(if variable("CONFORMANCE_SHADOW").is_some_and(|value| value == "1") { limits.shadow() } else { limits })
}
