//! The parsed document: its operations and fragments by name.

use std::collections::HashMap;

use apollo_parser::Parser;
use apollo_parser::cst::{Definition, FragmentDefinition, OperationDefinition};

use crate::error::{CostError, CostErrorKind};

/// Deepest nesting of braces and brackets that is parsed; fields are bounded by the route.
pub(super) const NESTING_MAX: usize = 64;
/// Most tokens of a document.
const TOKENS_MAX: usize = 50_000;

/// A document that was parsed without an error.
pub(super) struct GraphqlDocument {
    operations: Vec<(Option<String>, OperationDefinition)>,
    pub(super) fragments: HashMap<String, FragmentDefinition>,
}

fn bad(message: impl Into<std::borrow::Cow<'static, str>>) -> CostError {
    CostErrorKind::BadGraphql.error(message)
}

impl GraphqlDocument {
    pub(super) fn parse(text: &str) -> Result<GraphqlDocument, CostError> {
        let tree = Parser::new(text).recursion_limit(NESTING_MAX).token_limit(TOKENS_MAX).parse();
        if let Some(error) = tree.errors().next() {
            return Err(match (error.is_limit(), error.message().contains("recursion")) {
                (true, true) => CostErrorKind::GraphqlTooDeep.error("the query is nested too deeply"),
                (true, false) => CostErrorKind::GraphqlTooManyFields.error("the query has more than 50000 tokens"),
                (false, _) => bad(format!("the query is not GraphQL at byte {}", error.index())),
            });
        }
        let mut document = GraphqlDocument { operations: Vec::new(), fragments: HashMap::new() };
        for definition in tree.document().definitions() {
            let name = definition.name().map(|name| name.text().to_string());
            match definition {
                Definition::OperationDefinition(operation) => document.operations.push((name, operation)),
                Definition::FragmentDefinition(fragment) => {
                    let name = name.ok_or_else(|| bad("a fragment has no name"))?;
                    if document.fragments.insert(name, fragment).is_some() {
                        return Err(bad("two fragments have the same name"));
                    }
                }
                _ => return Err(bad("the document defines types")),
            }
        }
        Ok(document)
    }

    /// The operation that would run.
    pub(super) fn operation(&self, name: Option<&str>) -> Result<&OperationDefinition, CostError> {
        let named = |wanted: &str| {
            let mut found = self.operations.iter().filter(|(name, _)| name.as_deref() == Some(wanted));
            found.next().filter(|_| found.next().is_none())
        };
        let (_, operation) = match (name, self.operations.as_slice()) {
            (Some(name), _) => named(name).ok_or_else(|| bad("no operation, or more than one, has the given name"))?,
            (None, [operation]) => operation,
            (None, []) => return Err(bad("the document has no operation")),
            (None, _) => return Err(bad("the document has several operations, and `operationName` says none")),
        };
        Ok(operation)
    }
}
