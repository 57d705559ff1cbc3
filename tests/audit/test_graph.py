import pytest

from harness.audit.graph import GraphError, parse

NAMES = "Gradients/Default/net"
GRAPH = f"""# IR entry: @Step_1
# Total subgraphs: 2
%para1_windows: <Tensor[Int32], (8, 17)>
%para2_w.weight: <Ref[Tensor[Float32]], (64, 32), ref_key=w.weight, is_parameter>
%para3_norm.weight: <Ref[Tensor[Float32]], (64), ref_key=norm.weight, is_parameter>

subgraph @Step_1() {{
  %0(CNode_1) = call @Micro_2(%para1_windows)
  %1(CNode_2) = %0[@Partial(@Micro_2)](%para1_windows)
  %2(CNode_3) = AllReduce(%1) {{instance name: grad_mirror_Mirror_1}} primitive_attrs: {{group: "2-77", fusion: I64(1), op: "sum", group_rank_ids: (0, 2), mirror_user_id: "w.weight"}}
      : (<Tensor[Float32], (64, 32)>) -> (<Tensor[Float32], (64, 32)>)
      # Fullname with scope: ({NAMES}/AllReduce-op1)
  Return(%2)
}}

subgraph @Micro_2(%para9_x) {{
  %0(CNode_4) = AllReduce(%para9_x) {{instance name: forward_op_9}} primitive_attrs: {{group: "2-88", fusion: I64(0), op: "max", group_rank_ids: (0, 1)}}
      : (<Tensor[BFloat16], (8, 16)>) -> (<Tensor[BFloat16], (8, 16)>)
      # Fullname with scope: (Default/net/AllReduce-op0)
  %1(CNode_5) = Receive(%0) {{instance name: r}} primitive_attrs: {{src_global_rank: I64(5), src_rank: I64(1), group_rank_ids: (0, 5), is_bp: Bool(1)}}
      : (<Tensor[Float32], (1)>) -> (<Tensor[Float32], (4, 16)>)
  Return(%1)
}}

subgraph @Forgotten_3(%para9_x) {{
  %0(CNode_6) = AllGather(%para9_x) {{instance name: x}} primitive_attrs: {{group_rank_ids: (0, 1)}}
      : (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (4)>)
}}
"""  # noqa: E501


def test_operators_are_read_with_their_groups_bytes_and_calls():
    reduce, inner, receive = parse(GRAPH).operators
    assert (reduce.kind, reduce.ranks, reduce.size, reduce.fusion, reduce.calls) == ("AllReduce", (0, 2), 8192, 1, 1)
    assert (reduce.reduction, reduce.parameter, reduce.is_backward) == ("sum", "w.weight", True)
    assert (inner.size, inner.calls, inner.reduction, inner.is_backward) == (2 * 8 * 16, 2, "max", False)
    assert (receive.kind, receive.ranks, receive.size, receive.calls) == ("Receive", (5,), 4 * 4 * 16, 2)
    assert receive.is_backward


def test_what_no_step_reaches_does_not_count():
    assert "AllGather" not in {operator.kind for operator in parse(GRAPH).operators}


def test_parameters_have_their_shapes_on_this_rank():
    assert parse(GRAPH).parameters == {"w.weight": (64, 32), "norm.weight": (64,)}


@pytest.mark.parametrize("text", ["", "no graph at all\n" * 10])
def test_another_text_is_refused(text):
    with pytest.raises(GraphError, match="no «IR entry»"):
        parse(text)
