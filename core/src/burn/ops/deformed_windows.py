"""Old names of `burn.ops.deformable_shapes`, until plugins import burn.plugin_api."""

from burn.ops.deformable_shapes import (
    DeformableAttributes as DeformationRule,
    DeformableGeometry as Deformation,
    check_deformable_gradient as check_gradient,
    deformable_geometry as deformation,
    undeformed_positions as starts,
)

__all__ = ["Deformation", "DeformationRule", "check_gradient", "deformation", "starts"]
