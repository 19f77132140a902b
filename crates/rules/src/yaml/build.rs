//! Builds the tree from parser events, and rejects what rules must not contain.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};

use super::refuse::{self, number, position};
use super::{Comment, Document, NODES_MAX, SCALAR_BYTES_MAX, SourceSpan, TEXT_BYTES_MAX, YamlKey, YamlKind, YamlNode};
use crate::position::SourcePosition;
use crate::problem::{Problem, Problems, quote, short};

pub(super) fn document(text: &str, comments: bool, depth: usize) -> Result<Document, Vec<Problem>> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("the text has {} bytes", text.len());
        let problem = Problem::error("too-large", SourcePosition { line: 1, column: 1 }, "", message);
        return Err(vec![problem.help(format!("at most {TEXT_BYTES_MAX} bytes (16 MiB) are read; split the rules"))]);
    }
    let options = granit_parser::options! {
        disallow_directives: true,
        emit_unresolved_aliases: true,
        emit_anchor_events: true,
        emit_comments: comments,
        max_buffered_comment_events: 1_000_000,
        flow_nesting_limit: depth + 1,
        block_nesting_limit: depth + 1,
    };
    let mut builder = Builder::new(text, depth);
    for event in Parser::new_from_str_with_options(text, options) {
        let step = match event {
            Ok((event, span)) => builder.event(event, &span),
            Err(error) => Err(refuse::syntax(&error, depth)),
        };
        if let Err(problem) = step {
            builder.problems.push(problem);
            break;
        }
    }
    builder.finish()
}

/// A list or map that is not closed yet.
struct OpenCollection {
    span: SourceSpan,
    held: Collection,
}

enum Collection {
    List(Vec<YamlNode>),
    Map { entries: Vec<(YamlKey, YamlNode)>, key: Option<YamlKey>, seen: SeenKeys },
}

/// Keys of a map so far, hashed so that 100,000 of them do not cost quadratic time.
type SeenKeys = HashMap<String, SourcePosition>;

struct Builder<'a> {
    text: &'a str,
    /// Deepest nesting accepted.
    depth: usize,
    open: Vec<OpenCollection>,
    root: Option<YamlNode>,
    comments: Vec<Comment>,
    documents: usize,
    nodes: usize,
    problems: Problems,
}

impl<'a> Builder<'a> {
    fn new(text: &'a str, depth: usize) -> Self {
        Self {
            text,
            depth,
            open: Vec::new(),
            root: None,
            comments: Vec::new(),
            documents: 0,
            nodes: 0,
            problems: Problems::default(),
        }
    }

    fn event(&mut self, event: Event<'_>, span: &granit_parser::Span) -> Result<(), Problem> {
        if event.tag().is_some() {
            self.refuse_tag(span);
        }
        match event {
            Event::DocumentStart(..) => self.start_document(span),
            Event::Scalar(text, style, ..) => self.scalar(&text, style, span),
            Event::SequenceStart(style, ..) => self.open(span, style, Collection::List(Vec::new())),
            Event::MappingStart(style, ..) => {
                self.open(span, style, Collection::Map { entries: Vec::new(), key: None, seen: SeenKeys::new() })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Anchor(_, name) => {
                let message = format!("the anchor `&{}` is not allowed", short(&name));
                let help = "anchors, aliases and tags are not allowed: write the value where it is used";
                self.problems.push(Problem::error("yaml-anchor", position(&span.start), "", message).help(help));
                Ok(())
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => self.alias(span),
            Event::Comment(text, _) => {
                let at = position(&span.start);
                let own_line = has_own_line(self.text, span);
                self.comments.push(Comment { at, text: text.into_owned(), own_line });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn start_document(&mut self, span: &granit_parser::Span) -> Result<(), Problem> {
        self.documents += 1;
        if self.documents == 1 {
            return Ok(());
        }
        let problem =
            Problem::error("several-documents", position(&span.start), "", "a second YAML document starts here");
        Err(problem.help("a rules file is one document; remove the `---` and what follows"))
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, span: &granit_parser::Span) -> Result<(), Problem> {
        if text.len() > SCALAR_BYTES_MAX {
            let message = format!("a value of {} bytes", text.len());
            let problem = Problem::error("too-large", position(&span.start), "", message);
            return Err(problem.help(format!("a single value has at most {SCALAR_BYTES_MAX} bytes (64 KiB)")));
        }
        let kind = YamlKind::Scalar { text: text.to_owned(), quoted: style != ScalarStyle::Plain };
        self.add(YamlNode { span: narrow(span, false), kind })
    }

    fn alias(&mut self, span: &granit_parser::Span) -> Result<(), Problem> {
        let written = span.slice(self.text).unwrap_or("*");
        let problem = Problem::error(
            "yaml-alias",
            position(&span.start),
            "",
            format!("the alias {} is not allowed", quote(written)),
        );
        self.problems.push(problem.help(format!(
            "anchors, aliases and tags are not allowed: write the value where it is used; text with a leading `*` needs quotes: \"{}\"",
            short(written)
        )));
        self.add(YamlNode {
            span: narrow(span, false),
            kind: YamlKind::Scalar { text: written.to_owned(), quoted: true },
        })
    }

    fn refuse_tag(&mut self, span: &granit_parser::Span) {
        let at = span.tag_start().unwrap_or(span.start);
        let written = span.tag_span().and_then(|tag| tag.slice(self.text)).unwrap_or("!");
        let help = match written.starts_with("!!") {
            true => "anchors, aliases and tags are not allowed: remove it".to_owned(),
            false => format!("a value that starts with `!` needs quotes: \"{}\"", short(written)),
        };
        self.problems.push(
            Problem::error("yaml-tag", position(&at), "", format!("the tag {} is not allowed", quote(written)))
                .help(help),
        );
    }

    fn open(&mut self, span: &granit_parser::Span, style: StructureStyle, held: Collection) -> Result<(), Problem> {
        if self.open.len() >= self.depth {
            return Err(refuse::too_deep(position(&span.start), self.depth));
        }
        self.open.push(OpenCollection { span: narrow(span, style == StructureStyle::Flow), held });
        Ok(())
    }

    fn close(&mut self, span: &granit_parser::Span) -> Result<(), Problem> {
        let Some(OpenCollection { span: mut own, held }) = self.open.pop() else { return Ok(()) };
        let kind = match held {
            Collection::List(items) => YamlKind::List(items),
            Collection::Map { entries, .. } => YamlKind::Map(entries),
        };
        own.end_line = match own.flow {
            true => number(span.end.line()),
            false => last_line(&kind).unwrap_or(own.line),
        };
        self.add(YamlNode { span: own, kind })
    }

    /// Adds a finished node as root, item, key or value.
    fn add(&mut self, node: YamlNode) -> Result<(), Problem> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            let problem = Problem::error("too-large", node.position(), "", format!("more than {NODES_MAX} values"));
            return Err(problem.help("split the rules into namespaces, or keep overrides in the database"));
        }
        match self.open.last_mut().map(|open| &mut open.held) {
            None => self.root = Some(node),
            Some(Collection::List(items)) => items.push(node),
            Some(Collection::Map { entries, key, seen }) => match key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let (new, problem) = read_key(node, seen);
                    *key = Some(new);
                    self.problems.extend(problem);
                }
            },
        }
        Ok(())
    }

    fn finish(self) -> Result<Document, Vec<Problem>> {
        if !self.problems.is_empty() {
            return Err(self.problems.into_parts().0);
        }
        let empty = YamlNode {
            span: SourceSpan { line: 1, column: 1, end_line: 1, flow: false },
            kind: YamlKind::Map(Vec::new()),
        };
        let root = self
            .root
            .filter(|root| !matches!(&root.kind, YamlKind::Scalar { text, quoted: false } if super::is_blank(text)));
        Ok(Document { root: root.unwrap_or(empty), comments: self.comments })
    }
}

fn read_key(node: YamlNode, seen: &mut SeenKeys) -> (YamlKey, Option<Problem>) {
    let at = node.position();
    let text = match node.kind {
        YamlKind::Scalar { text, quoted } if quoted || !super::is_blank(&text) => text,
        _ => {
            let problem = Problem::error("bad-key", at, "", "a key that is not text").help("keys are plain names");
            return (YamlKey { text: String::new(), span: node.span }, Some(problem));
        }
    };
    let problem = match seen.insert(text.clone(), at) {
        _ if text == "<<" => Some(
            Problem::error("yaml-merge", at, "", "the merge key `<<` is not allowed")
                .help("anchors, aliases and tags are not allowed: write the fields where they are used"),
        ),
        Some(first) => Some(
            Problem::error("duplicate-key", at, "", format!("the key {} is there twice", quote(&text)))
                .help(format!("the first one is on line {}; remove one of them", first.line)),
        ),
        None => None,
    };
    (YamlKey { text, span: node.span }, problem)
}

fn last_line(kind: &YamlKind) -> Option<u32> {
    match kind {
        YamlKind::List(items) => items.last().map(|item| item.span.end_line),
        YamlKind::Map(entries) => entries.last().map(|(_, value)| value.span.end_line),
        YamlKind::Scalar { .. } => None,
    }
}

fn narrow(span: &granit_parser::Span, flow: bool) -> SourceSpan {
    let SourcePosition { line, column } = position(&span.start);
    // A block scalar ends where the next line starts.
    let end = span.end.line() - usize::from(span.end.col() == 0 && span.end.line() > span.start.line());
    SourceSpan { line, column, end_line: number(end).max(line), flow }
}

/// Whether only white space precedes a comment on its line.
fn has_own_line(text: &str, span: &granit_parser::Span) -> bool {
    let before = span.start.byte_offset().and_then(|start| text.get(..start)).unwrap_or("");
    before.rsplit(['\n', '\r']).next().unwrap_or("").trim().is_empty()
}
