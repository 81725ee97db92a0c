//! nearest: the nearest member that may be asked; the next one while it is ejected. The children are put in order of
//! distance when the tree is built, so that the walk only looks at their states.

use super::Random;
use crate::route::tree::{Children, Choose, Query};

#[derive(Debug)]
pub(in crate::route) struct Nearest;

impl Choose for Nearest {
    fn name(&self) -> &'static str {
        "nearest"
    }

    #[inline]
    fn choose(&self, _: &Query<'_>, children: &Children<'_>, _: &mut Random) -> usize {
        (0..children.len())
            .find(|&index| children.is_up(index))
            .unwrap_or(0)
    }

    fn why(&self, _: &Query<'_>, children: &Children<'_>, chosen: usize) -> String {
        let Some(member) = children.member(chosen) else {
            return "the first of its children".into();
        };
        let mut text = format!("distance {:?}", member.distance).to_lowercase();
        let nowhere = |index: &usize| {
            children
                .member(*index)
                .is_some_and(|member| member.socket.is_none())
        };
        match (0..chosen).filter(|passed| !nowhere(passed)).count() {
            0 => {}
            passed => text.push_str(&format!("; {passed} nearer ejected")),
        }
        match (0..children.len()).filter(nowhere).count() {
            0 => {}
            lost => text.push_str(&format!("; {lost} passed by, as their names do not resolve")),
        }
        text
    }
}
