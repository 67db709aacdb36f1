"""A program's products and collectives in order, as JAX traces it."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from grader import draw
from grader.arrays.meshes import make_mesh
from grader.draw.picture import OF_KIND

MESH = make_mesh({"x": 2, "y": 2})


def region(v, w):
    everybody = lax.all_gather(v, "y", axis=0, tiled=True)
    return lax.psum_scatter(jnp.tanh(everybody @ w) @ w.T, "y", scatter_dimension=0, tiled=True)


PROGRAM = jax.shard_map(region, mesh=MESH, in_specs=(P(("x", "y")), P(None, "y")), out_specs=P(("x", "y")))
ARGS = jnp.ones((8, 4)), jnp.ones((4, 6))


def test_what_a_device_comes_by_is_told_in_order():
    assert repr(draw.flow(PROGRAM, *ARGS, title="a pair")).splitlines() == [
        "a pair",
        "  all_gather over y → 4×4",
        "  product",
        "  product",
        "  reduce_scatter over y → 2×4",
    ]


def test_collectives_have_their_colours_and_products_none():
    (ax,) = draw.flow(jax.jit(PROGRAM), *ARGS).figure.axes
    colours = [to_hex(p.get_facecolor(), keep_alpha=True) for p in ax.patches if p.get_gid()]
    assert colours == [f"{OF_KIND['all_gather']}ff", "#00000000", "#00000000", f"{OF_KIND['reduce_scatter']}ff"]


def test_a_gradient_comes_by_more():
    told = repr(draw.flow(jax.grad(lambda *args: PROGRAM(*args).sum()), *ARGS)).splitlines()
    assert sum("all_gather" in line for line in told) == 2 == sum("reduce_scatter" in line for line in told)


def test_nothing_is_no_picture():
    with pytest.raises(ValueError, match="no product and no collective"):
        draw.flow(jnp.sin, jnp.ones(2))


def test_a_long_chain_breaks_where_a_sum_is_dealt_out():
    (ax,) = draw.flow(lambda v, w: PROGRAM(PROGRAM(PROGRAM(v, w), w), w), *ARGS).figure.axes
    rows = [patch.get_y() for patch in ax.patches if patch.get_gid()]
    assert [rows.count(y) for y in sorted(set(rows))] == [4, 4, 4]


def test_a_product_says_with_which_weights_through_turning_and_gathering():
    def region(p, v):
        everybody = lax.all_gather(p["in"], "y", axis=1, tiled=True)
        return jnp.einsum("bd,df->bf", v, everybody) @ p["out"].T

    cut = {"in": P(None, "y"), "out": P()}
    program = jax.shard_map(region, mesh=MESH, in_specs=(cut, P("x")), out_specs=P("x"), check_vma=False)
    weights = {"in": jnp.ones((4, 6)), "out": jnp.ones((4, 6))}
    assert repr(draw.flow(program, weights, jnp.ones((8, 4)))).splitlines() == [
        "  all_gather of in over y → 4×6",
        "  product with in",
        "  product with out",
    ]


def scanned(v, weights):
    def layer(v, w):
        return PROGRAM(v, w), None

    return lax.scan(layer, v, weights)[0] @ jnp.ones((4, 2))


def test_what_is_in_a_scan_comes_once_and_says_how_often():
    assert repr(draw.flow(scanned, jnp.ones((8, 4)), jnp.ones((3, 4, 6)))).splitlines() == [
        "  all_gather over y → 4×4, 3 times",
        "  product, 3 times",
        "  product, 3 times",
        "  reduce_scatter over y → 2×4, 3 times",
        "  product",
    ]


def test_a_frame_has_the_boxes_of_its_scan_and_no_other():
    def twice(v, w):
        return scanned(scanned(v, w) @ jnp.ones((2, 4)), w)

    (ax,) = draw.flow(twice, jnp.ones((8, 4)), jnp.ones((3, 4, 6))).figure.axes
    frames = [patch for patch in ax.patches if isinstance(patch, Rectangle) and not patch.get_gid()]
    boxes = [patch for patch in ax.patches if patch.get_gid()]
    within = [
        [box for box in boxes if frame.get_bbox().containsx(box.get_x()) and frame.get_bbox().containsy(box.get_y())]
        for frame in frames
    ]
    assert [[box.get_gid().endswith("3 times") for box in held] for held in within] == [[True] * 4] * 2
    assert [text.get_text() for text in ax.texts].count("3 times") == 2


def test_a_norm_is_seen_and_what_is_added_to_its_result_but_no_bias():
    def block(p, v):
        normed = v / jnp.sqrt(jnp.mean(v**2, axis=-1, keepdims=True) + 1e-6)
        return lax.psum(normed @ p["w"], "x") + p["b"], v + (lax.psum(normed @ p["w"], "x") + p["b"])

    program = jax.shard_map(block, mesh=MESH, in_specs=P(), out_specs=P())
    weights = {"w": jnp.ones((4, 4)), "b": jnp.ones(4)}
    assert repr(draw.flow(program, weights, jnp.ones((8, 4)))).splitlines() == [
        "  norm",
        "  product with w",
        "  all_reduce over x → 8×4",
        "  product with w",
        "  all_reduce over x → 8×4",
        "  x +",
    ]


def test_a_block_of_a_transformer_has_a_row_for_each_pair():
    def pair(v, w):
        normed = v / jnp.sqrt(jnp.mean(v**2, axis=-1, keepdims=True))
        return v + region(normed, w)

    twice = jax.shard_map(
        lambda v, w: pair(pair(v, w), w), mesh=MESH, in_specs=(P(("x", "y")), P(None, "y")), out_specs=P(("x", "y"))
    )
    (ax,) = draw.flow(twice, *ARGS).figure.axes
    boxes = [(patch.get_y(), patch.get_gid()) for patch in ax.patches if patch.get_gid()]
    rows = [[gid for y, gid in boxes if y == top] for top in sorted({y for y, _ in boxes})]
    assert len(rows) == 2 and [(row[0], row[-1]) for row in rows] == 2 * [("norm", "x +")]
