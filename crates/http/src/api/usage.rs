//! `GET /v1/usage?client_key=…`: what a client has used of every rule. Nothing is charged.

use tollgate_service::check_request::BodyError;
use tollgate_service::refusal::{OTHER_NAMESPACE, STORE_UNAVAILABLE, write_body_error, write_json};
use tollgate_service::render::{ProblemDetails, write_problem};
use tollgate_service::{CheckRequest, Reply, UsageRejection};

use super::{DataApi, PreparedCall};

/// A question for usage: the attributes of the client, from the query.
#[derive(Debug)]
pub struct UsageQuery {
    pub(crate) call: PreparedCall,
    attributes: Vec<(String, String)>,
}

impl UsageQuery {
    pub(super) fn new(call: PreparedCall, query: Option<&str>) -> UsageQuery {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        UsageQuery { call, attributes: pairs.into_owned().collect() }
    }

    /// A parameter whose value is not UTF-8: another client would be answered for.
    fn unreadable(&self) -> Option<&str> {
        let lossy = |text: &str| text.contains(char::REPLACEMENT_CHARACTER);
        let mut all = self.attributes.iter();
        all.find(|(name, value)| lossy(name) || lossy(value)).map(|(name, _)| name.as_str())
    }

    /// A parameter that is there twice.
    fn repeated(&self) -> Option<&str> {
        let earlier = |index: usize, name: &str| self.attributes.iter().take(index).any(|(other, _)| other == name);
        let mut all = self.attributes.iter().enumerate();
        all.find(|(index, (name, _))| earlier(*index, name)).map(|(_, (name, _))| name.as_str())
    }
}

impl DataApi {
    pub(crate) async fn usage(&self, query: &UsageQuery, reply: &mut Reply) {
        let unreadable = query.unreadable().map(|name| (name, "bad_text", "is not UTF-8"));
        let repeated = || query.repeated().map(|name| (name, "duplicate_field", "is there twice"));
        if let Some((name, code, detail)) = unreadable.or_else(repeated) {
            let field = name.chars().take(64).filter(char::is_ascii_graphic).collect();
            return write_body_error(&BodyError { code, field, detail: detail.to_owned() }, reply);
        }
        let value = |wanted: &str| query.attributes.iter().find(|(name, _)| name == wanted);
        let namespace = value("namespace").map_or("", |(_, namespace)| namespace.as_str());
        let attributes = query.attributes.iter().filter(|(name, _)| name != "namespace");
        let attributes = attributes.map(|(name, value)| (name.as_str(), value.as_str()));
        let request = match CheckRequest::named(namespace, attributes, None, true) {
            Ok(request) => request,
            Err(error) => return write_body_error(&error, reply),
        };
        if !self.may_ask(query.call, &request) {
            return OTHER_NAMESPACE.write(reply);
        }
        match self.service.usage(&request).await {
            Ok(usage) => write_json(200, &usage.to_string(), reply),
            Err(UsageRejection::Invalid(error)) => write_problem(&ProblemDetails::from(&error), reply),
            Err(UsageRejection::StoreUnavailable) => STORE_UNAVAILABLE.write(reply),
        }
    }
}
