//! Finds the endpoint of a path.

use super::endpoint::{AdminEndpoint, HttpMethod};
use super::percent;
use super::problem::AdminProblem;

/// Finds the endpoint and the path parameters. Of two matching endpoints, the one with fewer parameters wins.
pub fn find(
    table: &'static [AdminEndpoint],
    method: &str,
    path: &str,
) -> Result<(&'static AdminEndpoint, Vec<String>), AdminProblem> {
    let fits = |endpoint: &&AdminEndpoint| matches(endpoint.path, path);
    let fewest = table.iter().filter(fits).map(|endpoint| endpoint.path_parameters().count()).min();
    let Some(fewest) = fewest else { return Err(no_such_path(path)) };
    let mut there = table.iter().filter(fits).filter(|endpoint| endpoint.path_parameters().count() == fewest);
    let wanted = HttpMethod::of(method);
    match there.clone().find(|endpoint| Some(endpoint.method) == wanted) {
        Some(endpoint) => Ok((endpoint, path_parameters(endpoint, path)?)),
        None => Err(no_such_method(&mut there)),
    }
}

fn matches(template: &str, path: &str) -> bool {
    let (mut parts, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (parts.next(), given.next()) {
            (None, None) => return true,
            (Some(part), Some(text)) if part == text || (part.starts_with('{') && !text.is_empty()) => {}
            _ => return false,
        }
    }
}

fn path_parameters(endpoint: &AdminEndpoint, path: &str) -> Result<Vec<String>, AdminProblem> {
    let pairs = endpoint.path.split('/').zip(path.split('/'));
    let decode = |text: &str| {
        percent::decode(text, percent::Plus::IsPlus)
            .ok_or_else(|| AdminProblem::new(400, "bad_path", "The path is not percent-encoded UTF-8, or holds a NUL."))
    };
    pairs.filter(|(part, _)| part.starts_with('{')).map(|(_, text)| decode(text)).collect()
}

fn no_such_path(path: &str) -> AdminProblem {
    let hint = match path.starts_with("/v1/check") || path == "/check" {
        true => "Checks are on the data port.",
        false => "GET /docs shows what there is.",
    };
    AdminProblem::new(404, "no_such_path", format!("There is no such path here. {hint}"))
}

fn no_such_method(there: &mut dyn Iterator<Item = &AdminEndpoint>) -> AdminProblem {
    let mut allowed: Vec<&str> = there.map(|endpoint| endpoint.method.name()).collect();
    if allowed.contains(&"GET") {
        allowed.push("HEAD");
    }
    let allowed = allowed.join(", ");
    AdminProblem::new(405, "method_not_allowed", format!("Use one of {allowed}.")).with("Allow", allowed)
}
