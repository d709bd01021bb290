//! Which elements of a vector a pooled element reads.

use serde::{Deserialize, Serialize};

use crate::{ProtocolError, Result, Samples, Work};

/// Sliding windows over the last two axes of `channels x height x width`; padding lies outside and holds no element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    /// Channels.
    pub channels: usize,
    /// Input height and width.
    pub image: [usize; 2],
    /// Window height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal stride.
    pub strides: [usize; 2],
    /// Padding: top, left, bottom, right; smaller than the kernel.
    pub pads: [usize; 4],
}

impl Windows {
    /// One window for each of `count` elements.
    #[must_use]
    pub fn each(count: usize) -> Self {
        Self { channels: count, image: [1, 1], kernel: [1, 1], strides: [1, 1], pads: [0; 4] }
    }

    /// The same windows over the elements of several samples, one after the other.
    #[must_use]
    pub const fn of_samples(self, samples: Samples) -> Self {
        Self { channels: samples.times(self.channels), ..self }
    }

    /// Number of input elements.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.channels * self.image[0] * self.image[1]
    }

    /// Elements of a window without padding.
    #[must_use]
    pub fn area(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Whether each element is a window of its own, in order: [`Self::groups`] would list what is known.
    #[must_use]
    pub fn are_elements(&self) -> bool {
        (self.kernel, self.strides, self.pads) == ([1, 1], [1, 1], [0; 4]) && self.inputs() != 0
    }

    /// Number of windows.
    ///
    /// # Errors
    /// As [`Self::groups`].
    pub fn count(&self) -> Result<usize> {
        Ok(self.channels * self.positions(0)? * self.positions(1)?)
    }

    /// What reading all windows takes, and a circuit on one of them.
    #[must_use]
    pub fn work(&self) -> Work {
        let circuit_values = (self.kernel[0] as u64).saturating_mul(self.kernel[1] as u64);
        let windows = self.count().map_or(u64::MAX, |count| count as u64);
        let window_elements = if circuit_values == 1 { 0 } else { windows.saturating_mul(circuit_values) };
        Work { window_elements, circuit_values, ..Work::default() }
    }

    /// For each output element, the indices of the input elements in its window, in row-major order.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if a size is zero, or a window is larger than the padded image or may lie in padding alone.
    pub fn groups(&self) -> Result<Vec<Vec<usize>>> {
        let [rows, columns] = [self.axis(0)?, self.axis(1)?];
        let [height, width] = self.image;
        let pixel = |channel: usize, y: &usize, x: &usize| (channel * height + y) * width + x;
        let mut groups = Vec::with_capacity(self.channels * rows.len() * columns.len());
        for channel in 0..self.channels {
            for ys in &rows {
                groups.extend(columns.iter().map(|xs| {
                    ys.iter().flat_map(|y| xs.iter().map(move |x| pixel(channel, y, x))).collect::<Vec<_>>()
                }));
            }
        }
        Ok(groups)
    }

    /// As [`Self::groups`], with border windows filled up to [`Self::area`] elements by repeating one of their own, which leaves
    /// a maximum as it is.
    ///
    /// # Errors
    /// As [`Self::groups`].
    pub fn filled_groups(&self) -> Result<Vec<Vec<usize>>> {
        let mut groups = self.groups()?;
        for group in &mut groups {
            let first = group[0];
            group.resize(self.area(), first);
        }
        Ok(groups)
    }

    /// The indices of all windows' first elements, then of their second ones and so on, border windows filled up as in
    /// [`Self::filled_groups`].
    ///
    /// # Errors
    /// As [`Self::groups`].
    pub fn place_by_place(&self) -> Result<Vec<usize>> {
        if self.are_elements() {
            return Ok((0..self.inputs()).collect());
        }
        let groups = self.filled_groups()?;
        Ok((0..self.area()).flat_map(|place| groups.iter().map(move |group| group[place])).collect())
    }

    /// Window positions along one axis.
    fn positions(&self, axis: usize) -> Result<usize> {
        let (size, kernel, stride) = (self.image[axis], self.kernel[axis], self.strides[axis]);
        let (before, after) = (self.pads[axis], self.pads[axis + 2]);
        let positive = size != 0 && kernel != 0 && stride != 0 && self.channels != 0;
        ProtocolError::refuse_if(
            !positive || before >= kernel || after >= kernel || kernel > size + before + after,
            "pooling windows",
        )?;
        Ok((size + before + after - kernel) / stride + 1)
    }

    /// For each window position along one axis, the real indices it covers.
    fn axis(&self, axis: usize) -> Result<Vec<Vec<usize>>> {
        let (size, kernel, stride) = (self.image[axis], self.kernel[axis], self.strides[axis]);
        let (positions, before) = (self.positions(axis)?, self.pads[axis]);
        let covered = |position: usize| {
            let start = position * stride;
            (start..start + kernel).filter_map(|i| i.checked_sub(before)).filter(|i| *i < size).collect()
        };
        Ok((0..positions).map(covered).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn windows_cover_rows_and_columns() {
        let windows = Windows { channels: 2, image: [4, 4], kernel: [2, 2], strides: [2, 2], pads: [0; 4] };
        let groups = windows.groups().unwrap();
        assert_eq!(groups.len(), 8);
        assert_eq!(groups[0], [0, 1, 4, 5]);
        assert_eq!(groups[7], [26, 27, 30, 31]);
    }

    #[test]
    fn windows_of_one_element_each_are_known_without_a_list() {
        for windows in [Windows::each(7), Windows { channels: 2, image: [3, 4], ..Windows::each(0) }] {
            assert!(windows.are_elements());
            let each: Vec<Vec<usize>> = (0..windows.inputs()).map(|i| vec![i]).collect();
            assert_eq!(windows.groups().unwrap(), each);
            assert!(!Windows { strides: [1, 2], ..windows }.are_elements());
        }
        assert!(!Windows::each(0).are_elements());
    }

    #[test]
    fn borders_are_filled_with_elements_of_the_same_window() {
        let windows =
            Windows { channels: 1, image: [2, 2], kernel: [2, 2], strides: [2, 2], pads: [1, 1, 1, 1] };
        assert_eq!(windows.groups().unwrap(), [vec![0], vec![1], vec![2], vec![3]]);
        assert_eq!(windows.filled_groups().unwrap()[3], [3; 4]);
        assert_eq!(windows.place_by_place().unwrap()[12..], [0, 1, 2, 3]);
        assert_eq!(Windows::each(3).place_by_place().unwrap(), [0, 1, 2]);
    }

    #[test]
    fn windows_outside_the_image_are_refused() {
        let windows = Windows { channels: 1, image: [2, 2], kernel: [3, 3], strides: [1, 1], pads: [0; 4] };
        assert!(windows.groups().is_err());
        assert!(Windows { pads: [3, 0, 0, 0], ..windows }.groups().is_err());
        assert!(Windows { strides: [0, 1], kernel: [1, 1], ..windows }.groups().is_err());
    }
}
