//! Rules broken on purpose, so that tests can see a checker detect the fault.

use tombolo_protocol::BrokenRule;
use tombolo_protocol::copies::BrokenCopies;
use tombolo_protocol::nmoesi::BrokenNmoesi;
use tombolo_protocol::paging::BrokenPaging;
use tombolo_protocol::publication::BrokenPublication;
use tombolo_protocol::transfer::BrokenTransfer;

/// Rules broken on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrokenRules {
    /// Broken coherence rule.
    pub rule: Option<BrokenRule>,
    /// Broken rule for blocks of host memory.
    pub nmoesi: Option<BrokenNmoesi>,
    /// Broken rule for pages that move.
    pub paging: Option<BrokenPaging>,
    /// Broken rule for copies between GPUs.
    pub copies: Option<BrokenCopies>,
    /// Broken rule for transfers between host and device.
    pub transfer: Option<BrokenTransfer>,
    /// Broken rule for published pages.
    pub publication: Option<BrokenPublication>,
}

impl From<Option<BrokenRule>> for BrokenRules {
    fn from(rule: Option<BrokenRule>) -> BrokenRules {
        BrokenRules { rule, ..BrokenRules::default() }
    }
}

impl From<BrokenRule> for BrokenRules {
    fn from(rule: BrokenRule) -> BrokenRules {
        BrokenRules::from(Some(rule))
    }
}

impl From<BrokenNmoesi> for BrokenRules {
    fn from(rule: BrokenNmoesi) -> BrokenRules {
        BrokenRules { nmoesi: Some(rule), ..BrokenRules::default() }
    }
}

impl From<BrokenPaging> for BrokenRules {
    fn from(paging: BrokenPaging) -> BrokenRules {
        BrokenRules { paging: Some(paging), ..BrokenRules::default() }
    }
}

impl From<BrokenCopies> for BrokenRules {
    fn from(rule: BrokenCopies) -> BrokenRules {
        BrokenRules { copies: Some(rule), ..BrokenRules::default() }
    }
}

impl From<BrokenTransfer> for BrokenRules {
    fn from(rule: BrokenTransfer) -> BrokenRules {
        BrokenRules { transfer: Some(rule), ..BrokenRules::default() }
    }
}

impl From<BrokenPublication> for BrokenRules {
    fn from(publication: BrokenPublication) -> BrokenRules {
        BrokenRules { publication: Some(publication), ..BrokenRules::default() }
    }
}
