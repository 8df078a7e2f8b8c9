//! URDF: links and joints of a robot model, as urdfdom reads them.
//!
//! Only the kinematic tree is read: frames, axes, limits and mimic joints. Shapes,
//! masses and extensions are for viewers and simulators. The rules are urdfdom's:
//! one root link, known joint types, limits for revolute and prismatic joints.

use std::collections::{BTreeMap, BTreeSet};

use pteros::tf::Isometry;
use roxmltree::{Document, Node, ParsingOptions};

/// Largest number of XML nodes: a detailed humanoid has 20 000.
const NODES_MAX: u32 = 1_000_000;

/// A robot model: a tree of links, connected by joints.
#[derive(Clone, Debug, PartialEq)]
pub struct Urdf {
    /// The robot's name.
    pub name: String,
    /// The one link that is no joint's child.
    pub root: String,
    /// The joints, in the order of the document.
    pub joints: Vec<Joint>,
}

/// A joint, which connects two links.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    /// Its name, as in joint states.
    pub name: String,
    /// How it moves.
    pub kind: JointKind,
    /// Frame of the parent link.
    pub parent: String,
    /// Frame of the child link.
    pub child: String,
    /// The child's pose in the parent's frame, at position 0.
    pub origin: Isometry,
    /// The unit vector about or along which it moves, in its own frame.
    pub axis: [f64; 3],
    /// Its limits, if it has any.
    pub limits: Option<Limits>,
    /// The limits of `<safety_controller>`.
    pub soft_limits: Limits,
    /// Another joint that it follows.
    pub mimic: Option<Mimic>,
}

/// How a joint moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JointKind {
    /// About its axis, within limits.
    Revolute,
    /// About its axis, without limits.
    Continuous,
    /// Along its axis.
    Prismatic,
    /// Not at all.
    Fixed,
    /// In all six directions: no single position describes it.
    Floating,
    /// In a plane: no single position describes it.
    Planar,
}

/// Positions between which a joint moves; rad or m. What the document leaves out is
/// `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The least position.
    pub lower: Option<f64>,
    /// The largest position.
    pub upper: Option<f64>,
}

/// A joint's position as a linear function of another one's.
#[derive(Clone, Debug, PartialEq)]
pub struct Mimic {
    /// The other joint.
    pub joint: String,
    /// Factor of its position.
    pub multiplier: f64,
    /// Added to the product.
    pub offset: f64,
}

impl Urdf {
    /// Reads the text of a URDF document.
    ///
    /// # Errors
    /// A text that is not URDF, with the line and the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let options = ParsingOptions {
            allow_dtd: false,
            nodes_limit: NODES_MAX,
            ..ParsingOptions::default()
        };
        let document = Document::parse_with_options(text, options)
            .map_err(|error| format!("the robot description is not valid XML: {error}"))?;
        let robot = document.root_element();
        let reader = Reader {
            document: &document,
        };
        if robot.tag_name().name() != "robot" {
            let found = robot.tag_name().name();
            return Err(reader.error(robot, format!("the root is <{found}>, not <robot>")));
        }
        reader.robot(robot).map_err(|problem| {
            // Documents that only need their ${…} replaced are read, as upstream.
            let is_source = robot.descendants().any(|node| is_xacro(&node));
            let hint = "; it has elements of xacro: give the output of xacro instead";
            format!("{problem}{}", if is_source { hint } else { "" })
        })
    }

    /// The joint of that name.
    pub fn joint(&self, name: &str) -> Option<&Joint> {
        self.joints.iter().find(|joint| joint.name == name)
    }
}

impl<'d> Reader<'d> {
    fn robot(&self, robot: Node<'d, '_>) -> Result<Urdf, String> {
        let name = self.required(robot, "name")?.to_owned();
        let mut links = BTreeSet::new();
        for link in children(robot, "link") {
            let name = self.required(link, "name")?;
            if !links.insert(name) {
                return Err(self.error(link, format!("a second link \"{name}\"")));
            }
        }
        let joints = children(robot, "joint").map(|joint| self.joint(joint));
        let joints = joints.collect::<Result<Vec<_>, _>>()?;
        let root = root_link(&links, &joints).map_err(|problem| self.error(robot, problem))?;
        Ok(Urdf { name, root, joints })
    }
}

impl Joint {
    /// The child's pose in the parent's frame, at a position in rad or m. Joints that no
    /// single position describes stay at 0.
    pub fn pose(&self, position: f64) -> Isometry {
        let [x, y, z] = self.axis;
        let motion = match self.kind {
            JointKind::Revolute | JointKind::Continuous => {
                let (sine, cosine) = (position / 2.0).sin_cos();
                Isometry {
                    rotation: [x * sine, y * sine, z * sine, cosine],
                    ..Isometry::IDENTITY
                }
            }
            JointKind::Prismatic => Isometry {
                translation: [x * position, y * position, z * position],
                ..Isometry::IDENTITY
            },
            JointKind::Fixed | JointKind::Floating | JointKind::Planar => Isometry::IDENTITY,
        };
        self.origin * motion
    }
}

struct Reader<'d> {
    document: &'d Document<'d>,
}

impl<'d> Reader<'d> {
    fn error(&self, node: Node<'_, '_>, problem: String) -> String {
        let line = self.document.text_pos_at(node.range().start).row;
        format!("robot description, line {line}: {problem}")
    }

    fn required(&self, node: Node<'d, '_>, attribute: &str) -> Result<&'d str, String> {
        let value = node.attribute(attribute).filter(|value| !value.is_empty());
        value.ok_or_else(|| {
            let tag = node.tag_name().name();
            self.error(node, format!("<{tag}> has no attribute \"{attribute}\""))
        })
    }

    fn number(&self, node: Node<'_, '_>, attribute: &str) -> Result<Option<f64>, String> {
        let Some(text) = node.attribute(attribute) else {
            return Ok(None);
        };
        let number = text
            .trim()
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite());
        let wrong = || self.error(node, format!("{attribute}=\"{text}\" is not a number"));
        number.ok_or_else(wrong).map(Some)
    }

    fn vector(
        &self,
        node: Option<Node<'_, '_>>,
        attribute: &str,
        default: [f64; 3],
    ) -> Result<[f64; 3], String> {
        let Some((node, text)) = node.and_then(|node| Some((node, node.attribute(attribute)?)))
        else {
            return Ok(default);
        };
        let numbers = text.split_whitespace().map(|word| word.parse().ok());
        let numbers: Option<Vec<f64>> = numbers.collect();
        match numbers.as_deref() {
            Some(&[x, y, z]) if x.is_finite() && y.is_finite() && z.is_finite() => Ok([x, y, z]),
            _ => Err(self.error(node, format!("{attribute}=\"{text}\" is not three numbers"))),
        }
    }

    fn joint(&self, node: Node<'d, '_>) -> Result<Joint, String> {
        let name = self.required(node, "name")?.to_owned();
        let kind = match self.required(node, "type")? {
            "revolute" => JointKind::Revolute,
            "continuous" => JointKind::Continuous,
            "prismatic" => JointKind::Prismatic,
            "fixed" => JointKind::Fixed,
            "floating" => JointKind::Floating,
            "planar" => JointKind::Planar,
            other => {
                let problem = format!("joint \"{name}\" has the unknown type \"{other}\"");
                return Err(self.error(node, problem));
            }
        };
        let link_of = |tag: &str| {
            let end = children(node, tag).next();
            let end =
                end.ok_or_else(|| self.error(node, format!("joint \"{name}\" has no <{tag}>")))?;
            self.required(end, "link").map(str::to_owned)
        };
        let origin = children(node, "origin").next();
        let translation = self.vector(origin, "xyz", [0.0; 3])?;
        let rotation = self.vector(origin, "rpy", [0.0; 3])?;
        let limit = children(node, "limit").next();
        if limit.is_none() && matches!(kind, JointKind::Revolute | JointKind::Prismatic) {
            let problem = format!("joint \"{name}\" moves within limits, but has no <limit>");
            return Err(self.error(node, problem));
        }
        let safety = children(node, "safety_controller").next();
        let limits = |node: Node<'_, '_>, lower, upper| {
            Ok::<_, String>(Limits {
                lower: self.number(node, lower)?,
                upper: self.number(node, upper)?,
            })
        };
        let soft_limits =
            safety.map(|safety| limits(safety, "soft_lower_limit", "soft_upper_limit"));
        Ok(Joint {
            kind,
            parent: link_of("parent")?,
            child: link_of("child")?,
            origin: Isometry::from_rpy(translation, rotation),
            axis: self.axis(node, &name)?,
            limits: limit
                .map(|limit| limits(limit, "lower", "upper"))
                .transpose()?,
            soft_limits: soft_limits.transpose()?.unwrap_or_default(),
            mimic: self.mimic(node)?,
            name,
        })
    }

    /// The unit vector of the axis; x by default.
    fn axis(&self, joint: Node<'_, '_>, name: &str) -> Result<[f64; 3], String> {
        let axis = children(joint, "axis").next();
        let vector = self.vector(axis, "xyz", [1.0, 0.0, 0.0])?;
        let length = vector.iter().map(|part| part * part).sum::<f64>().sqrt();
        if length == 0.0 {
            return Err(self.error(joint, format!("the axis of joint \"{name}\" has no length")));
        }
        Ok(vector.map(|part| part / length))
    }

    fn mimic(&self, joint: Node<'d, '_>) -> Result<Option<Mimic>, String> {
        let Some(node) = children(joint, "mimic").next() else {
            return Ok(None);
        };
        Ok(Some(Mimic {
            joint: self.required(node, "joint")?.to_owned(),
            multiplier: self.number(node, "multiplier")?.unwrap_or(1.0),
            offset: self.number(node, "offset")?.unwrap_or(0.0),
        }))
    }
}

fn children<'d, 'i>(node: Node<'d, 'i>, tag: &str) -> impl Iterator<Item = Node<'d, 'i>> {
    node.children()
        .filter(move |child| child.is_element() && child.tag_name().name() == tag)
}

fn is_xacro(node: &Node<'_, '_>) -> bool {
    let namespace = node.tag_name().namespace().unwrap_or_default();
    namespace.contains("xacro")
}

/// The one link that is no joint's child.
fn root_link(links: &BTreeSet<&str>, joints: &[Joint]) -> Result<String, String> {
    let mut parent_of = BTreeMap::new();
    let mut names = BTreeSet::new();
    for joint in joints {
        let Joint {
            name,
            parent,
            child,
            ..
        } = joint;
        if !names.insert(name) {
            return Err(format!("a second joint \"{name}\""));
        }
        if let Some(unknown) = [parent, child]
            .into_iter()
            .find(|link| !links.contains(link.as_str()))
        {
            return Err(format!(
                "joint \"{name}\" names the unknown link \"{unknown}\""
            ));
        }
        if parent_of.insert(child.as_str(), parent.as_str()).is_some() {
            return Err(format!("link \"{child}\" is the child of two joints"));
        }
    }
    let mut roots = links.iter().filter(|link| !parent_of.contains_key(**link));
    let root = match (roots.next(), roots.next()) {
        _ if links.is_empty() => return Err("there is no link".into()),
        (Some(root), None) => *root,
        (Some(one), Some(other)) => {
            return Err(format!("two root links: \"{one}\" and \"{other}\""));
        }
        (None, _) => return Err("no root link: every link is the child of a joint".into()),
    };
    // With one root and one parent each, links outside its tree form a cycle.
    let mut children_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (child, parent) in &parent_of {
        children_of.entry(parent).or_default().push(child);
    }
    let mut reached = vec![root];
    let mut next = 0;
    while let Some(link) = reached.get(next) {
        next += 1;
        reached.extend(children_of.remove(link).unwrap_or_default());
    }
    match children_of.keys().next() {
        Some(link) => Err(format!("link \"{link}\" is its own ancestor")),
        None => Ok(root.to_owned()),
    }
}
