//! Shapes of values, and inputs that have them.

use crate::InputError;

/// Refuses inputs of the wrong length or with NaN or infinity.
///
/// # Errors
/// [`InputError::Length`] and [`InputError::NotFinite`].
pub fn check_input(input: &[f32], shape: &[usize]) -> Result<(), InputError> {
    let expected = shape.iter().product();
    if input.len() != expected {
        return Err(InputError::Length { found: input.len(), expected, shape: shape.to_vec() });
    }
    match input.iter().position(|x| !x.is_finite()) {
        Some(index) => Err(InputError::NotFinite { index }),
        None => Ok(()),
    }
}

/// Repeats one value per first axis over the whole shape; a whole tensor stays as it is.
pub fn per_channel_or_whole<T: Copy>(values: &[T], shape: &[usize]) -> Vec<T> {
    let repeat = shape.iter().product::<usize>() / values.len().max(1);
    values.iter().flat_map(|&value| std::iter::repeat_n(value, repeat)).collect()
}

/// The three axes of an image; inference checked that there are three.
#[must_use]
pub fn image(shape: &[usize]) -> [usize; 3] {
    <[usize; 3]>::try_from(shape).unwrap_or([1, 1, shape.iter().product()])
}

/// Height and width of an image's shape.
#[must_use]
pub fn area(shape: &[usize]) -> [usize; 2] {
    let [_, height, width] = image(shape);
    [height, width]
}
