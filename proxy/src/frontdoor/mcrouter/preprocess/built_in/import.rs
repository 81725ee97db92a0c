//! Values of other files.

use std::rc::Rc;

use crate::{
    config::{Diagnostic, document::shortened, reading::Reading},
    frontdoor::mcrouter::{
        json,
        preprocess::{
            call::LazyArguments,
            item::{Item, Json},
            scope::{Expand, Import, Scope},
        },
    },
};

/// The value of a file, for which the macros and constants hold that hold here. If it cannot be had, the
/// default.
pub(super) fn import(expander: &mut dyn Expand, unread: &LazyArguments<'_>) -> Result<Item, Diagnostic> {
    let Json::Text(path) = unread.take("path", expander)?.value else {
        return Err(Diagnostic::whole("import path is not a string"));
    };
    match expander.imported().get(&path) {
        Some(Import::Value(item)) => return Ok(item.clone()),
        Some(Import::Busy) => {
            let problem = format!("Import '{}': the file imports itself", shortened(&path));
            return Err(Diagnostic::whole(problem));
        }
        None => {}
    }
    expander.imported().insert(Rc::clone(&path), Import::Busy);
    let item = match read(expander, &path, unread) {
        Ok(item) => item,
        Err(why) => match unread.optional("default", expander)? {
            Some(default) => default,
            None => {
                let problem = format!("Import '{}': {why}", shortened(&path));
                return Err(Diagnostic::whole(problem));
            }
        },
    };
    expander.imported().insert(path, Import::Value(item.clone()));
    Ok(item)
}

fn read(expander: &mut dyn Expand, path: &str, unread: &LazyArguments<'_>) -> Result<Item, Diagnostic> {
    let text = expander.imported_text(path)?;
    expander.meter().charge(text.len() / 64)?;
    let node = json::parse(&text, &mut Reading::default())?;
    // It is expanded with its own places, for messages about what is wrong in it.
    let own = Item::of(node, None)?;
    let item = expander.item(&own, &Scope::default())?;
    expander.meter().charge(item.value.size())?;
    // Messages about what is wrong with its use name the place that names the file.
    Item::of(item.into_node(), Some(unread.at))
}
