//! Ensembles of decision trees.

use lanner_network::{CompileError, Tensors};
use serde::{Deserialize, Serialize};

use crate::graph::Node;

/// An ensemble of decision trees over columns whose values are whole numbers from 0 to `high`; only as a graph's first operator.
///
/// Each node goes right where its column is at least its threshold, else left. A score is the sum of what the reached leaf of each tree says of it, and its
/// base. Strings name tensors; those of indices, thresholds and paths hold whole numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trees {
    /// How many trees.
    pub trees: usize,
    /// The largest value of a column, below 2^24.
    pub high: u32,
    /// The column of each node.
    ///
    /// Complete trees of depth d have 2^d - 1 nodes each: those of level l, the root's being 0, come behind the levels above, and among them, the node
    /// that is reached by the turns p, bit i of which is that of level i, 1 to the right, is in place `p * trees + tree` from there. Other trees
    /// have any number of nodes, each tree as many, one tree after the other.
    pub columns: String,
    /// The threshold of each node, from 0, which every value reaches, to `high + 1`, which none does.
    pub thresholds: String,
    /// Nothing of complete trees. Else `[leaves of all trees, nodes of a tree]`: 1 where the way to a leaf turns right at a node, -1 where it turns left, 0
    /// where it does not come through it; and all 2 for a leaf that is never reached.
    pub paths: Option<String>,
    /// What each leaf says, `[leaves, scores]`; `[leaves, 1]` where the trees are as many equal parts as there are scores, one after another, and each
    /// part adds to its own. The leaves of complete trees are ordered as a level's nodes are, those of others tree by tree.
    pub values: String,
    /// `[scores]`.
    pub base: String,
}

/// What trees are, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    /// How many trees.
    pub trees: usize,
    /// The largest value of a column.
    pub high: u32,
    /// How many columns there are.
    pub inputs: usize,
    /// The column of each node.
    pub columns: Vec<usize>,
    /// The threshold of each node.
    pub thresholds: Vec<u32>,
    /// The turns on the way to each leaf, a row for each, as in [`Trees::paths`]; none of complete trees.
    pub paths: Option<Vec<i8>>,
    /// What each leaf says, row-major.
    pub values: Vec<f32>,
    /// What each score begins with.
    pub base: Vec<f32>,
}

/// The deepest complete trees.
pub const MAX_DEPTH: u32 = 10;

/// What [`Trees::paths`] has of a leaf that is never reached.
pub const UNREACHED: i8 = 2;

impl Forest {
    /// Reads a node's trees, over an input of a given shape whose elements are the columns.
    ///
    /// # Errors
    /// [`CompileError::UnknownTensor`], or [`CompileError::Shape`] naming the tensor that does not fit the others.
    pub fn new(
        node: &Node,
        trees: &Trees,
        inputs: &[usize],
        tensors: &Tensors,
    ) -> Result<Self, CompileError> {
        let refuse = |reason: &str| {
            let reason = reason.to_owned();
            Err(CompileError::Shape { node: node.name.clone(), operator: "Trees", reason })
        };
        let tensor = |name: &str| tensors.of_node(&node.name, name);
        let inputs: usize = inputs.iter().product();
        if inputs == 0 || trees.trees == 0 || trees.high >= 1 << 24 {
            return refuse("there must be trees, and columns of values below 2^24");
        }
        let columns = whole(tensor(&trees.columns)?.data(), inputs.saturating_sub(1));
        let thresholds = whole(tensor(&trees.thresholds)?.data(), trees.high as usize + 1);
        let (Some(columns), Some(thresholds)) = (columns, thresholds) else {
            return refuse("`columns` and `thresholds` must hold whole numbers within what there is");
        };
        let nodes = columns.len() / trees.trees;
        if columns.is_empty() || columns.len() != nodes * trees.trees || thresholds.len() != columns.len() {
            return refuse("each tree must have as many nodes, with a column and a threshold each");
        }
        let values = tensor(&trees.values)?;
        let (&[leaves, width], base) = (values.shape(), tensor(&trees.base)?.data().to_vec()) else {
            return refuse("`values` must have a row for each leaf");
        };
        let grouped = width == 1 && base.len() > 1;
        if leaves == 0
            || !leaves.is_multiple_of(trees.trees)
            || !(width == base.len() || grouped)
            || (grouped && !trees.trees.is_multiple_of(base.len()))
        {
            return refuse(
                "`values` must have as many rows for each tree, and a column for each score or one",
            );
        }
        let paths = match &trees.paths {
            None => {
                let fits = (nodes + 1).is_power_of_two()
                    && (nodes + 1).ilog2() <= MAX_DEPTH
                    && leaves == trees.trees * (nodes + 1);
                if !fits {
                    return refuse("without `paths` trees must be complete");
                }
                None
            }
            Some(name) => {
                let paths = tensor(name)?;
                let turn = |x: &f32| {
                    TURNS
                        .into_iter()
                        .find(|turn| f32::from(*turn).to_bits() == x.to_bits() || (*turn == 0 && *x == 0.0))
                };
                let turns: Option<Vec<i8>> = paths.data().iter().map(turn).collect();
                let is_whole =
                    |row: &[i8]| row.iter().all(|turn| (*turn == UNREACHED) == (row[0] == UNREACHED));
                let fits = |turns: &Vec<i8>| {
                    *paths.shape() == [leaves, nodes] && turns.chunks_exact(nodes).all(is_whole)
                };
                match turns.filter(fits) {
                    Some(turns) => Some(turns),
                    None => return refuse("`paths` must have a turn for each leaf and node, all 2 or none"),
                }
            }
        };
        Ok(Self {
            trees: trees.trees,
            high: trees.high,
            inputs,
            columns,
            thresholds: thresholds.into_iter().map(|x| x as u32).collect(),
            paths,
            values: values.data().to_vec(),
            base,
        })
    }

    /// Nodes of a tree.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.columns.len() / self.trees
    }

    /// How many scores a leaf has something to say of.
    #[must_use]
    pub fn width(&self) -> usize {
        self.values.len() / self.leaves() / self.trees
    }

    /// Leaves of a tree.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.paths.as_ref().map_or(self.nodes() + 1, |paths| paths.len() / self.columns.len())
    }

    /// The scores of a row of columns: sums in `f64`.
    #[must_use]
    pub fn eval(&self, x: &[f32]) -> Vec<f32> {
        let mut sums: Vec<f64> = self.base.iter().map(|base| f64::from(*base)).collect();
        let width = self.width();
        for tree in 0..self.trees {
            let Some(leaf) = self.reached(x, tree) else { continue };
            let first = if width == sums.len() { 0 } else { tree / (self.trees / sums.len()) };
            for (sum, value) in sums[first..].iter_mut().zip(&self.values[leaf * width..][..width]) {
                *sum += f64::from(*value);
            }
        }
        sums.into_iter().map(|sum| sum as f32).collect()
    }

    /// The row of the leaf that a tree reaches.
    fn reached(&self, x: &[f32], tree: usize) -> Option<usize> {
        let turns = |node: usize| f64::from(x[self.columns[node]]) >= f64::from(self.thresholds[node]);
        let Some(paths) = &self.paths else {
            let (mut way, mut level) = (0, 1);
            while level <= self.nodes() {
                let right = turns((level - 1) * self.trees + way * self.trees + tree);
                way += if right { level } else { 0 };
                level *= 2;
            }
            return Some(way * self.trees + tree);
        };
        let (nodes, leaves) = (self.nodes(), self.leaves());
        let is_reached = |leaf: &usize| {
            paths[leaf * nodes..][..nodes].iter().enumerate().all(|(node, turn)| match turn {
                0 => true,
                1 => turns(tree * nodes + node),
                -1 => !turns(tree * nodes + node),
                _ => false,
            })
        };
        (tree * leaves..(tree + 1) * leaves).find(is_reached)
    }
}

const TURNS: [i8; 4] = [0, 1, -1, UNREACHED];

/// Whole numbers from 0 to `most`.
fn whole(values: &[f32], most: usize) -> Option<Vec<usize>> {
    let number = |x: &f32| {
        let fits = x.fract() == 0.0 && *x >= 0.0 && *x <= 16_777_216.0 && *x as usize <= most;
        fits.then_some(*x as usize)
    };
    values.iter().map(number).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_network::Tensor;

    use super::*;
    use crate::graph::Op;

    fn forest(paths: Option<(Vec<usize>, Vec<f32>)>, leaves: usize) -> Result<Forest, CompileError> {
        let mut tensors = Tensors::default();
        let mut put = |name: &str, shape: Vec<usize>, data: Vec<f32>| {
            tensors.insert(name, Tensor::new(shape, data).unwrap()).unwrap();
        };
        put("columns", vec![6], vec![0.0, 1.0, 1.0, 0.0, 2.0, 2.0]);
        put("thresholds", vec![6], vec![5.0, 3.0, 1.0, 0.0, 8.0, 4.0]);
        put("values", vec![leaves, 1], (0..leaves).map(|leaf| leaf as f32).collect());
        put("base", vec![1], vec![0.5]);
        let named = paths.is_some().then(|| "paths".to_owned());
        if let Some((shape, data)) = paths {
            put("paths", shape, data);
        }
        let trees = Trees {
            trees: 2,
            high: 7,
            columns: "columns".to_owned(),
            thresholds: "thresholds".to_owned(),
            paths: named,
            values: "values".to_owned(),
            base: "base".to_owned(),
        };
        let node =
            Node { name: "trees".to_owned(), op: Op::Trees(trees.clone()), inputs: vec!["x".to_owned()] };
        Forest::new(&node, &trees, &[3], &tensors)
    }

    #[test]
    fn complete_trees_are_walked_from_their_roots() {
        let forest = forest(None, 8).unwrap();
        assert_eq!((forest.nodes(), forest.leaves(), forest.width()), (3, 4, 1));
        // Tree 0: x0 >= 5, then x1 >= 1 (left) or x2 >= 8 (right); tree 1: x1 >= 3, then x0 >= 0 or x2 >= 4.
        for (x, leaves) in [([4.0, 0.0, 7.0], [0, 2]), ([5.0, 3.0, 4.0], [1, 3]), ([4.0, 1.0, 0.0], [2, 2])] {
            let sum: usize = leaves.iter().enumerate().map(|(tree, leaf)| leaf * 2 + tree).sum();
            assert_eq!(forest.eval(&x), [sum as f32 + 0.5], "{x:?}");
        }
    }

    #[test]
    fn leaves_of_other_trees_are_those_whose_turns_are_made() {
        let paths =
            [[-1, 0, 0], [1, -1, 0], [1, 1, 0], [2, 2, 2], [-1, 0, -1], [-1, 0, 1], [1, -1, 0], [1, 1, 0]];
        let rows: Vec<f32> = paths.as_flattened().iter().map(|turn| *turn as f32).collect();
        let forest = forest(Some((vec![8, 3], rows)), 8).unwrap();
        // Tree 0's nodes: x0 >= 5, x1 >= 3, x1 >= 1; tree 1's: x0 >= 0, x2 >= 8, x2 >= 4.
        assert_eq!(forest.eval(&[4.0, 7.0, 0.0]), [0.0 + 6.0 + 0.5]);
        assert_eq!(forest.eval(&[5.0, 3.0, 0.0]), [2.0 + 6.0 + 0.5]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(forest(None, 6).is_err(), "leaves that are too few");
        assert!(forest(Some((vec![8, 2], vec![0.0; 16])), 8).is_err(), "paths past too few nodes");
        assert!(forest(Some((vec![8, 3], vec![0.5; 24])), 8).is_err(), "half turns");
    }
}
