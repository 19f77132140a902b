//! Translates the variables of envoyproxy/ratelimit into settings.

use std::collections::BTreeMap;

use crate::Setting;

use super::environment::{RatelimitEnv, boolean};
use super::variables::{BOOLEANS, VARIABLES, VariableSupport};
use super::{address, duration};

/// The translation of the variables.
#[derive(Debug, Default)]
pub struct TranslatedSettings {
    /// Settings by name; Tollgate's own settings win over them.
    pub settings: BTreeMap<&'static str, String>,
    /// Variables that are set and have no effect.
    pub remarks: Vec<String>,
    /// Variables that are set and cannot be supported.
    pub problems: Vec<String>,
}

/// Translates the variables.
pub fn translate(variables: &BTreeMap<String, String>) -> TranslatedSettings {
    let mut translated = TranslatedSettings::default();
    let env = RatelimitEnv::new(variables);
    translated.booleans(&env);
    translated.listeners(&env);
    translated.tls(&env);
    translated.rules(&env);
    translated.store(&env);
    translated.logs(&env);
    translated.remarks(&env);
    translated
}

impl TranslatedSettings {
    fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.settings.insert(name, value.into());
    }

    /// Sets a value from a variable; an invalid value is a problem that names the variable.
    fn set_by(&mut self, variable: &str, name: &'static str, value: impl Into<String>) {
        let value = value.into();
        match Setting::named(name).map(|setting| setting.check(&value)) {
            Some(Err(fault)) => self.problems.push(format!("{variable}: {fault}")),
            _ => self.set(name, value),
        }
    }

    fn address(&mut self, name: &'static str, host: (&str, &str), port: (&str, &str)) {
        match address::listen(host.1, port.1) {
            Some(address) => self.set_by(host.0, name, address),
            None => self.problems.push(format!("{}={}: not a port", port.0, port.1)),
        }
    }

    fn booleans(&mut self, env: &RatelimitEnv<'_>) {
        for name in BOOLEANS {
            if let Some(value) = env.get(name).filter(|value| boolean(value).is_none()) {
                self.problems.push(format!("{name}={value}: write true or false"));
            }
        }
    }

    /// The listeners. envoyproxy/ratelimit has no authentication and no admin API.
    fn listeners(&mut self, env: &RatelimitEnv<'_>) {
        self.address("http", ("HOST", env.or("HOST", "0.0.0.0")), ("PORT", env.or("PORT", "8080")));
        let debug = ("DEBUG_HOST", env.or("DEBUG_HOST", "0.0.0.0"));
        self.address("metrics", debug, ("DEBUG_PORT", env.or("DEBUG_PORT", "6070")));
        match env.get("GRPC_UDS") {
            Some(path) => self.set_by("GRPC_UDS", "grpc", format!("unix:{path}")),
            None => {
                let host = ("GRPC_HOST", env.or("GRPC_HOST", "0.0.0.0"));
                self.address("grpc", host, ("GRPC_PORT", env.or("GRPC_PORT", "8081")));
            }
        }
        if let Some(age) = env.get("GRPC_MAX_CONNECTION_AGE") {
            match duration::from_go(age) {
                Some(age) => self.set_by("GRPC_MAX_CONNECTION_AGE", "grpc_max_connection_age", age),
                None => self.problems.push(format!("GRPC_MAX_CONNECTION_AGE={age}: write a duration, such as 24h")),
            }
        }
        for (name, value) in [("allow_anonymous", "true"), ("admin", "off"), ("db", "off")] {
            self.set(name, value);
        }
    }

    fn tls(&mut self, env: &RatelimitEnv<'_>) {
        if !env.is_true("GRPC_SERVER_USE_TLS") {
            return;
        }
        for needed in ["GRPC_SERVER_TLS_CERT", "GRPC_SERVER_TLS_KEY"] {
            if env.get(needed).is_none() {
                self.problems.push(format!("GRPC_SERVER_USE_TLS: {needed} is not set; name a file"));
            }
        }
        let files = [
            ("tls_cert", "GRPC_SERVER_TLS_CERT"),
            ("tls_key", "GRPC_SERVER_TLS_KEY"),
            ("tls_client_ca", "GRPC_CLIENT_TLS_CACERT"),
            ("tls_client_names", "GRPC_CLIENT_TLS_SAN"),
        ];
        for (setting, variable) in files {
            if let Some(value) = env.get(variable) {
                self.set_by(variable, setting, value);
            }
        }
        self.remarks.push("GRPC_SERVER_USE_TLS: the HTTP port speaks TLS too".to_owned());
    }

    fn rules(&mut self, env: &RatelimitEnv<'_>) {
        if let Some(kind) = env.get("CONFIG_TYPE").filter(|kind| *kind != "FILE") {
            self.problems.push(format!("CONFIG_TYPE={kind}: rules come from files; omit it, or set it to FILE"));
        }
        let parts = [
            env.or("RUNTIME_ROOT", "/srv/runtime_data/current"),
            env.or("RUNTIME_SUBDIRECTORY", ""),
            env.or("RUNTIME_APPDIRECTORY", "config"),
        ];
        let path: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        self.set("envoy_config", path.join("/"));
        let switches = [
            ("envoy_merge_domains", "MERGE_DOMAIN_CONFIG"),
            ("envoy_shadow", "SHADOW_MODE"),
            ("envoy_dynamic_metadata", "RESPONSE_DYNAMIC_METADATA"),
            ("envoy_stop_counting", "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"),
        ];
        self.set("envoy_unknown_errors", "true");
        for (setting, variable) in switches {
            if env.is_true(variable) {
                self.set(setting, "true");
            }
        }
        if let Some(bytes) = env.get("LOCAL_CACHE_SIZE_IN_BYTES") {
            self.set_by("LOCAL_CACHE_SIZE_IN_BYTES", "envoy_local_cache", bytes);
        }
        if let Some(ratio) = env.get("NEAR_LIMIT_RATIO") {
            match ratio.parse::<f64>() {
                Ok(ratio) if (0.01..=1.0).contains(&ratio) => {
                    self.set("envoy_near_limit", format!("{:.0}", ratio * 100.0));
                }
                _ => self.problems.push(format!("NEAR_LIMIT_RATIO={ratio}: write a part of 1, such as 0.8")),
            }
        }
        if env.is_true("LIMIT_RESPONSE_HEADERS_ENABLED") {
            let names = [
                env.or("LIMIT_LIMIT_HEADER", "RateLimit-Limit"),
                env.or("LIMIT_REMAINING_HEADER", "RateLimit-Remaining"),
                env.or("LIMIT_RESET_HEADER", "RateLimit-Reset"),
            ];
            match names.iter().find(|name| name.contains(',')) {
                Some(name) => self.problems.push(format!("LIMIT_…_HEADER={name}: name one header field")),
                None => self.set_by("LIMIT_…_HEADER", "envoy_headers", names.join(",")),
            }
        }
    }

    fn store(&mut self, env: &RatelimitEnv<'_>) {
        if let Some(kind) = env.get("BACKEND_TYPE").filter(|kind| *kind != "redis") {
            self.problems
                .push(format!("BACKEND_TYPE={kind}: counters are in Redis or Valkey; omit it, or set it to redis"));
            return;
        }
        match address::store(env) {
            Ok(Some(url)) => self.set_by("REDIS_URL", "store", url),
            Ok(None) => self.remarks.push("REDIS_URL is not set: counters are in this process alone".to_owned()),
            Err(why) => self.problems.push(why),
        }
        if let Some(ca) = env.get("REDIS_TLS_CACERT") {
            self.set("store_ca", ca);
        }
        if env.is_true("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION") {
            self.set("store_skip_hostname", "true");
        }
        for (variable, setting) in [("REDIS_TLS_CLIENT_CERT", "store_cert"), ("REDIS_TLS_CLIENT_KEY", "store_key")] {
            if let Some(file) = env.get(variable) {
                self.set(setting, file);
            }
        }
    }

    fn logs(&mut self, env: &RatelimitEnv<'_>) {
        let level = env.or("LOG_LEVEL", "WARN").to_ascii_lowercase();
        match level.as_str() {
            "trace" => self.set("log_level", "debug"),
            "warning" => self.set("log_level", "warn"),
            "fatal" | "panic" => self.set("log_level", "error"),
            _ => self.set_by("LOG_LEVEL", "log_level", level),
        }
        match env.or("LOG_FORMAT", "text") {
            "json" => self.set("log_format", "json"),
            _ => self.set("log_format", "people"),
        }
    }

    fn remarks(&mut self, env: &RatelimitEnv<'_>) {
        for (name, fate) in VARIABLES {
            if let (VariableSupport::Unsupported(why), Some(value)) = (fate, env.get(name))
                && boolean(value) != Some(false)
            {
                self.remarks.push(format!("{name} is not supported: {why}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(variables: &[(&str, &str)]) -> TranslatedSettings {
        let all = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        translate(&all)
    }

    #[test]
    fn without_variables_the_addresses_are_those_of_envoyproxy_ratelimit() {
        let TranslatedSettings { settings, remarks, problems } = translated(&[]);
        let get = |name: &str| settings.get(name).map(String::as_str);
        assert_eq!((get("http"), get("grpc")), (Some("0.0.0.0:8080"), Some("0.0.0.0:8081")));
        assert_eq!((get("metrics"), get("admin")), (Some("0.0.0.0:6070"), Some("off")));
        assert_eq!(get("envoy_config"), Some("/srv/runtime_data/current/config"));
        assert_eq!((remarks.len(), problems.len()), (1, 0), "{remarks:?}");
    }

    #[test]
    fn translates_variables_and_reports_unsupported_ones() {
        let TranslatedSettings { settings, remarks, problems } = translated(&[
            ("RUNTIME_ROOT", "/data"),
            ("RUNTIME_SUBDIRECTORY", "ratelimit"),
            ("REDIS_SOCKET_TYPE", "tcp"),
            ("REDIS_URL", "10.0.0.1:6379"),
            ("GRPC_UDS", "/run/rl.sock"),
            ("HOST", "::"),
            ("NEAR_LIMIT_RATIO", "0.9"),
            ("SHADOW_MODE", "True"),
            ("LIMIT_RESPONSE_HEADERS_ENABLED", "1"),
            ("LIMIT_RESET_HEADER", "X-Reset"),
            ("LOG_LEVEL", "DEBUG"),
            ("USE_STATSD", "false"),
            ("USE_PROMETHEUS", "true"),
            ("REDIS_PERSECOND", "true"),
        ]);
        let get = |name: &str| settings.get(name).map(String::as_str);
        assert_eq!(get("envoy_config"), Some("/data/ratelimit/config"));
        assert_eq!((get("store"), get("grpc")), (Some("redis://10.0.0.1:6379"), Some("unix:/run/rl.sock")));
        assert_eq!((get("http"), get("envoy_near_limit")), (Some("[::]:8080"), Some("90")));
        assert_eq!(get("envoy_headers"), Some("RateLimit-Limit,RateLimit-Remaining,X-Reset"));
        assert_eq!((get("envoy_shadow"), get("log_level")), (Some("true"), Some("debug")));
        let named: Vec<&str> =
            remarks.iter().filter_map(|remark| remark.split_once(" is not")).map(|(name, _)| name).collect();
        assert_eq!((named, problems.len()), (vec!["USE_PROMETHEUS", "REDIS_PERSECOND"], 0));
    }

    #[test]
    fn impossible_values_are_problems() {
        for (name, value) in [
            ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
            ("BACKEND_TYPE", "memcache"),
            ("NEAR_LIMIT_RATIO", "80"),
            ("PORT", "http"),
            ("REDIS_TYPE", "RING"),
        ] {
            let problems = translated(&[(name, value), ("REDIS_URL", "a:1")]).problems;
            assert!(problems.iter().any(|problem| problem.contains(name)), "{name}: {problems:?}");
        }
    }

    #[test]
    fn settings_exist() {
        for name in translated(&[("GRPC_SERVER_USE_TLS", "true"), ("GRPC_SERVER_TLS_CERT", "c")]).settings.keys() {
            assert!(crate::Setting::named(name).is_some(), "{name}");
        }
    }

    /// A problem names the variable and its value.
    #[test]
    fn problems_name_the_variable() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[("SHADOW_MODE", "yes")], "SHADOW_MODE=yes: write true or false"),
            (&[("REDIS_TLS", "on")], "REDIS_TLS=on: write true or false"),
            (&[("PORT", "abc")], "PORT=abc: not a port"),
            (
                &[("GRPC_SERVER_USE_TLS", "true"), ("GRPC_SERVER_TLS_CERT", "c.pem")],
                "GRPC_SERVER_USE_TLS: GRPC_SERVER_TLS_KEY is not set; name a file",
            ),
            (&[("GRPC_MAX_CONNECTION_AGE", "1.5h")], ""),
            (&[("GRPC_MAX_CONNECTION_AGE", "long")], "GRPC_MAX_CONNECTION_AGE=long: write a duration, such as 24h"),
            (
                &[("LIMIT_RESPONSE_HEADERS_ENABLED", "t"), ("LIMIT_RESET_HEADER", "a,b")],
                "LIMIT_…_HEADER=a,b: name one header field",
            ),
            (
                &[("REDIS_URL", "redis://u:p@a:1"), ("REDIS_AUTH", "q")],
                "REDIS_AUTH: REDIS_URL has a password already; omit one of them",
            ),
        ];
        for (variables, expected) in cases {
            assert_eq!(translated(variables).problems.join("\n"), *expected, "{variables:?}");
        }
        let level = translated(&[("LOG_LEVEL", "loud")]).problems;
        assert!(level.len() == 1 && level[0].starts_with("LOG_LEVEL: `loud`"), "{level:?}");
        let age = translated(&[("GRPC_MAX_CONNECTION_AGE", "1.5h")]);
        assert_eq!(age.settings.get("grpc_max_connection_age").map(String::as_str), Some("5400s"));
    }

    #[test]
    fn stores_are_written_as_urls() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[("REDIS_URL", "a:1")], "redis://a:1"),
            (&[("REDIS_URL", "a:1"), ("REDIS_TLS", "true"), ("REDIS_AUTH", "p@:s")], "rediss://p%40:s@a:1"),
            (&[("REDIS_URL", "a:1"), ("REDIS_AUTH", "secret/1")], "redis://:secret%2F1@a:1"),
            (&[("REDIS_URL", "a:1,b:2"), ("REDIS_TYPE", "cluster")], "redis-cluster://a:1,b:2"),
            (&[("REDIS_URL", "m,a:1, b:2"), ("REDIS_TYPE", "SENTINEL")], "redis-sentinel://a:1,b:2/m"),
            (&[("REDIS_URL", "redis://u:p@a:1/2")], "redis://u:p@a:1/2"),
            (&[("REDIS_URL", "redis://a:1"), ("REDIS_AUTH", "p"), ("REDIS_TLS", "1")], "rediss://:p@a:1"),
            (&[("REDIS_URL", "rediss://a:1"), ("REDIS_TLS", "1")], "rediss://a:1"),
        ];
        for (variables, url) in cases {
            let variables: BTreeMap<String, String> =
                variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let translated = translate(&variables);
            assert_eq!(translated.settings.get("store").map(String::as_str), Some(*url), "{:?}", translated.problems);
            assert!(crate::Setting::named("store").unwrap().check(url).is_ok(), "{url}");
        }
    }
}
