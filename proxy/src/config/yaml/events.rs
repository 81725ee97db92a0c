//! Parses YAML to a tree. The reader is strict: one document, names that are texts, no name twice, bounded
//! depth and size.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput};

use crate::config::{
    Diagnostic, Place,
    document::{DEPTH_LIMIT, Name, Node, Value, shortened},
};

/// Nodes in one text at most. Copies for anchors and aliases count, which bounds what a few nested ones grow
/// to.
const NODE_LIMIT: usize = 200_000;

/// Reads the only document in `text`.
pub(crate) fn parse(text: &str) -> Result<Node, Diagnostic> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        nodes: 0,
    };
    let mut root = None;
    loop {
        let (event, at) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) if root.is_some() => {
                return Err(Diagnostic::at(at, "a second document begins here").with_remedy("keep one"));
            }
            Event::DocumentStart(_) => {
                let (event, at) = reader.next()?;
                root = Some(reader.node(event, at, 0)?);
            }
            _ => {}
        }
    }
    root.ok_or_else(|| Diagnostic::at(Place { line: 1, column: 1 }, "the file is empty"))
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// Anchored nodes by the parser's number of the anchor, each with its count of nodes.
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Place), Diagnostic> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, place(span.start))),
            Some(Err(error)) => Err(refused(&error)),
            None => Ok((Event::StreamEnd, Place { line: 1, column: 1 })),
        }
    }

    fn node(&mut self, event: Event<'a>, at: Place, depth: usize) -> Result<Node, Diagnostic> {
        if depth >= DEPTH_LIMIT {
            return Err(Diagnostic::at(at, format!("nested more than {DEPTH_LIMIT} deep")));
        }
        let before = self.nodes;
        self.count(1, at)?;
        let (anchor, value) = match event {
            Event::Scalar(.., Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                return Err(
                    Diagnostic::at(at, "a YAML tag means nothing here").with_remedy("leave the `!…` out")
                );
            }
            Event::Scalar(text, style, anchor, None) => (
                anchor,
                Value::Scalar {
                    text: text.into_owned(),
                    quoted: style != ScalarStyle::Plain,
                },
            ),
            Event::SequenceStart(anchor, None) => (anchor, self.list(depth)?),
            Event::MappingStart(anchor, None) => (anchor, self.map(depth)?),
            Event::Alias(anchor) => return self.alias(anchor, at, depth),
            _ => return Err(Diagnostic::at(at, "a value is missing here")),
        };
        let node = Node { at, value };
        if anchor != 0 {
            self.count(self.nodes - before, at)?;
            self.anchors.insert(anchor, (node.clone(), self.nodes - before));
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Value, Diagnostic> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(nodes)),
                (event, at) => nodes.push(self.node(event, at, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Diagnostic> {
        let mut entries = Vec::new();
        let mut lines = HashMap::new();
        loop {
            let name = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Map(entries)),
                (Event::Scalar(text, ..), at) => Name {
                    at,
                    text: text.into_owned(),
                },
                (_, at) => return Err(Diagnostic::at(at, "a key is not a text")),
            };
            if let Some(line) = lines.insert(name.text.clone(), name.at.line) {
                let problem = format!("the key `{}` stood in line {line} already", shortened(&name.text));
                return Err(Diagnostic::at(name.at, problem).with_remedy("keep one"));
            }
            let (event, at) = self.next()?;
            let value = self.node(event, at, depth + 1)?;
            entries.push((name, value));
        }
    }

    /// A copy of the anchored node. Its parts keep their own places, where a mistake in them has to be
    /// corrected.
    fn alias(&mut self, anchor: usize, at: Place, depth: usize) -> Result<Node, Diagnostic> {
        let Some((node, nodes)) = self.anchors.get(&anchor) else {
            return Err(Diagnostic::at(at, "an alias stands inside of what it stands for"));
        };
        if depth + height(node) > DEPTH_LIMIT {
            return Err(Diagnostic::at(at, format!("nested more than {DEPTH_LIMIT} deep")));
        }
        let (node, nodes) = (node.clone(), *nodes);
        self.count(nodes, at)?;
        Ok(node)
    }

    fn count(&mut self, nodes: usize, at: Place) -> Result<(), Diagnostic> {
        self.nodes += nodes;
        match self.nodes > NODE_LIMIT {
            true => Err(Diagnostic::at(
                at,
                format!("more than {NODE_LIMIT} values, aliases counted in full"),
            )),
            false => Ok(()),
        }
    }
}

fn height(node: &Node) -> usize {
    1 + match &node.value {
        Value::Scalar { .. } => 0,
        Value::List(nodes) => nodes.iter().map(height).max().unwrap_or(0),
        Value::Map(entries) => entries.iter().map(|(_, node)| height(node)).max().unwrap_or(0),
    }
}

fn place(marker: Marker) -> Place {
    Place {
        line: marker.line() as u32,
        column: marker.col() as u32 + 1,
    }
}

fn refused(error: &ScanError) -> Diagnostic {
    Diagnostic::at(place(*error.marker()), format!("not YAML: {}", error.info()))
}
