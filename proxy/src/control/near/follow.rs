//! What a reload leaves of the near cache's settings.

use std::sync::Arc;

use crate::{
    config::schema::{Config, Scripts},
    control::{Proxy, configuration::Configuration},
    near::{Entries, Near, Rule},
    route::{Tree, all_near_settings},
};

/// What a change leaves to be freed once every worker serves by it.
#[derive(Default)]
pub(in crate::control) struct Leftovers {
    /// The near cache. `None`: there was none before.
    near: Option<Arc<Near>>,
    /// Rules that nobody has any more.
    gone: Vec<Arc<Rule>>,
    /// Rules whose largest reply is another one.
    resized: Vec<Arc<Rule>>,
}

impl Proxy {
    /// Puts what the files say otherwise than before in force. What was ordered at run time stays as far as
    /// the files say the same.
    pub(in crate::control) fn follow_near(running: &Configuration, after: &Config, next: &Tree) -> Leftovers {
        let before = running.config();
        let mut left = Leftovers {
            near: running.tree().near().cloned(),
            ..Leftovers::default()
        };
        let (earlier, later) = (all_near_settings(before), all_near_settings(after));
        let rules = next.near_rules();
        if let Some(near) = next.near() {
            near.set_scripts(after.near.scripts == Scripts::Keys);
            if before.near.memory() != after.near.memory() {
                near.store.set_memory(after.near.memory());
            }
        }
        for rule in rules.iter().flat_map(|rules| rules.all()) {
            if let (Some(earlier), Some(later)) = (earlier.get(&*rule.name), later.get(&*rule.name)) {
                let running = rule.settings();
                let settings = running.following(earlier, later);
                rule.set(&settings);
                if !rule.is_on() {
                    rule.drop_all();
                } else if settings.largest != running.largest {
                    left.resized.push(Arc::clone(rule));
                }
            }
        }
        let stays = |rule: &Arc<Rule>| {
            let next = rules.and_then(|rules| rules.get(&rule.name));
            next.is_some_and(|next| Arc::ptr_eq(next, rule))
        };
        let known = running
            .tree()
            .near_rules()
            .into_iter()
            .flat_map(|rules| rules.all());
        left.gone.extend(known.filter(|rule| !stays(rule)).cloned());
        left
    }

    /// Frees what nobody can find any more, beside everything else.
    pub(in crate::control) fn free_near(self: &Arc<Self>, left: Leftovers) {
        let Leftovers {
            near: Some(near),
            gone,
            resized,
        } = left
        else {
            return;
        };
        let (proxy, now) = (Arc::clone(self), self.near_now());
        self.runtime.spawn_blocking(move || {
            let entries = Entries(&near);
            gone.iter().for_each(|rule| rule.drop_all());
            for rule in &resized {
                entries.drop_unfit(rule);
            }
            entries.sweep(now);
            proxy.give_back();
        });
    }
}
