"""Times and memory, beside pytorch-crf and torch-struct."""

from __future__ import annotations

from benchmarks.torch_gpu.run import SHAPES, Run, chain_batch, events, graph, peak


def chain_figures(run: Run) -> None:
    """Losses, gradients and labels of chains."""
    import torch

    from partwise.torch import CRF
    from partwise.torch.cuda import chain

    for name, (B, T, L) in {**SHAPES, "D": (64, 128, 300), "long": (8, 4096, 16)}.items():
        for spread in (1.0, 40.0):
            if spread > 1 and name in ("D", "long"):
                continue
            label = name if spread == 1 else f"{name} dev 40"
            sets = []
            for k in range(4):
                tensors, lengths, _ = chain_batch(B, T, L, spread, seed=k, full=True)
                of = [tensors[0], tensors[2][0, :L].contiguous(), tensors[2][0, L].contiguous(), tensors[3][0].contiguous()]
                gold = torch.randint(0, L, (B * T,), device="cuda")
                sets.append(([t.requires_grad_() for t in of], gold))
            begins, full = chain.layout(B, T, None, torch.device("cuda", 0))

            def learn(k, sets=sets, begins=begins, full=full, T=T):
                given, gold = sets[k]
                return torch.autograd.grad(chain.chain_loss(*given, gold, begins, full, T)[0].sum(), given)

            def decode(k, sets=sets, begins=begins, full=full, T=T):
                e, w, s, f = (t.detach() for t in sets[k][0])
                return chain.decode(e, begins, full, w, s, f, T)

            run.time(label, "loss and gradient", "graph", lambda: graph(learn, 4))
            run.time(label, "decode", "graph", lambda: graph(decode, 4))
            if spread == 1:

                def only_scan(k, sets=sets, begins=begins, full=full, T=T):
                    given, gold = sets[k]
                    return chain.scan(given[0].detach(), begins, full, *(t.detach() for t in given[1:]), gold, T)

                run.time(label, "loss", "graph", lambda: graph(only_scan, 4))
            if spread > 1:
                continue
            run.time(label, "loss and gradient", "operator, eager", lambda: events(lambda: learn(0)))
            run.time(label, "decode", "operator, eager", lambda: events(lambda: decode(0)))
            run.time(label, "loss and gradient", "memory", lambda: peak(lambda: learn(0)), "MiB")
            layer = CRF(L, batch_first=True).cuda()
            emissions = torch.randn(B, T, L, device="cuda", requires_grad=True)
            tags = torch.randint(0, L, (B, T), device="cuda")

            def train(layer=layer, emissions=emissions, tags=tags):
                emissions.grad = None
                layer.zero_grad()
                (-layer(emissions, tags, None, reduction="mean")).backward()

            run.time(label, "loss and gradient", "layer, eager", lambda: events(train))
            run.time(label, "decode to lists", "layer, eager", lambda: events(lambda: layer.decode(emissions)))
            if name != "long":
                chain_peer(run, label, B, T, L, emissions, tags)
            del sets
            torch.cuda.empty_cache()


def chain_peer(run: Run, label, B, T, L, emissions, tags) -> None:
    """The same by pytorch-crf."""
    import torch
    from torchcrf import CRF as Peer

    peer = Peer(L, batch_first=True).cuda()
    mask = torch.ones(B, T, dtype=torch.bool, device="cuda")

    def train():
        emissions.grad = None
        peer.zero_grad()
        (-peer(emissions, tags, mask, reduction="mean")).backward()

    run.time(label, "loss and gradient", "pytorch-crf", lambda: events(train, 5, 1))
    run.time(label, "loss and gradient", "pytorch-crf memory", lambda: peak(train), "MiB")
    run.time(label, "decode to lists", "pytorch-crf", lambda: events(lambda: peer.decode(emissions, mask), 3, 1))


def tree_figures(run: Run) -> None:
    """Trees over words and over spans, beside torch-struct."""
    import torch

    from partwise.torch import DependencyTree, operators

    torch.manual_seed(0)
    sums, best = operators.OPERATORS["tree"].sums, operators.OPERATORS["tree"].best
    for B, what, kind in ((256, "spanning", 0), (64, "projective", 1)):
        n = 40
        arcs, lengths = torch.randn(B, n, n + 1, 1, device="cuda"), torch.full((B,), n)
        label = f"{B} x {n}"
        for single in (0, 1):
            run.time(
                label, f"{what} sums, single {single}", "eager", lambda: events(lambda: sums(arcs, lengths, [1, kind, single]))
            )
        there = lengths.to("cuda", torch.int32)
        run.time(label, f"{what} sums, single 1", "graph", lambda: graph(lambda k: sums(arcs, there, [1, kind, 1]), 4))
        run.time(label, f"{what} sums", "memory", lambda: peak(lambda: sums(arcs, lengths, [1, kind, 1])), "MiB")
        run.time(label, f"{what} best", "eager", lambda: events(lambda: best(arcs, lengths, [1, kind, 1], n)))
        run.time(label, f"{what} best", "graph", lambda: graph(lambda k: best(arcs, there, [1, kind, 1], n), 4))

        def face(kind=kind, arcs=arcs):
            tree = DependencyTree(arcs[..., 0], projective=bool(kind))
            return tree.log_partition, tree.marginals

        run.time(label, f"{what} sums", "distribution, eager", lambda: events(face))
        if not kind:
            held = torch.empty(arcs.shape, pin_memory=True)

            def on_cpu(held=held, arcs=arcs, lengths=lengths):
                held.copy_(arcs, non_blocking=True)
                torch.cuda.current_stream().synchronize()
                return [t.cuda() for t in operators._best(operators.TREE, [held], lengths, [1, 0, 1], n)]

            torch.set_num_threads(1)
            run.time(label, f"{what} best", "compiled, pinned memory", lambda: events(on_cpu))
    scores, lengths = torch.randn(64, 41, 41, 1, device="cuda"), torch.full((64,), 40)
    spans = operators.OPERATORS["spans"]
    run.time("64 x 40", "spans sums", "eager", lambda: events(lambda: spans.sums(scores, lengths, [1])))
    run.time("64 x 40", "spans best", "eager", lambda: events(lambda: spans.best(scores, lengths, [1], 79)))
    run.time("64 x 40", "spans sums", "memory", lambda: peak(lambda: spans.sums(scores, lengths, [1])), "MiB")

    import torch_struct

    square = torch.randn(256, 40, 40, device="cuda")

    def peer(make, scores, what="marginals"):
        def work():
            found = make(scores.detach().requires_grad_())
            return found.partition, getattr(found, what)

        return work

    makers = {
        "spanning sums": (lambda s: torch_struct.NonProjectiveDependencyCRF(s), square),
        "projective sums": (lambda s: torch_struct.DependencyCRF(s), square[:64].contiguous()),
        "spans sums": (lambda s: torch_struct.TreeCRF(s), torch.randn(64, 40, 40, 1, device="cuda")),
    }
    for what, (make, given) in makers.items():
        label = f"{len(given)} x 40"
        run.time(label, what, "torch-struct", lambda: events(peer(make, given), 5, 1))
        run.time(label, what, "torch-struct memory", lambda: peak(peer(make, given)), "MiB")
        if not what.startswith("spanning"):
            run.time(label, what.replace("sums", "best"), "torch-struct", lambda: events(peer(make, given, "argmax"), 5, 1))


def other_figures(run: Run) -> None:
    """Alignments and segmentations, beside torch-struct."""
    import torch

    from partwise.torch import operators

    torch.manual_seed(0)
    B, n = 64, 300
    tensors = [torch.randn(B, n, n, device="cuda"), *(torch.randn(B, 4, n, device="cuda") for _ in range(2))]
    lengths = torch.full((B, 2), n)
    align = operators.OPERATORS["alignment"]
    for local in (0, 1):
        run.time(
            "64 x 300 x 300",
            f"alignment sums, local {local}",
            "eager",
            lambda: events(lambda: align.sums(*tensors, lengths, [local])),
        )
        run.time(
            "64 x 300 x 300",
            f"alignment best, local {local}",
            "eager",
            lambda: events(lambda: align.best(*tensors, lengths, [local], n)),
        )
    run.time("64 x 300 x 300", "alignment sums", "memory", lambda: peak(lambda: align.sums(*tensors, lengths, [0])), "MiB")
    B, T, D, K = 64, 1000, 16, 24
    shapes = ((B, T, 2 * K), (B, T, D, K), (1, K + 1, K), (1, K))
    given = [torch.randn(shape, device="cuda") for shape in shapes]
    whole = torch.full((B,), T)
    pieces = operators.OPERATORS["segments"]
    label = "64 x 1000 x 16 x 24"
    run.time(label, "segments sums", "eager", lambda: events(lambda: pieces.sums(*given, whole, [K, D])))
    run.time(label, "segments best", "eager", lambda: events(lambda: pieces.best(*given, whole, [K, D], T)))
    run.time(label, "segments sums", "memory", lambda: peak(lambda: pieces.sums(*given, whole, [K, D])), "MiB")

    import torch_struct

    def peer(make, scores):
        def work():
            found = make(scores.detach().requires_grad_())
            return found.partition, found.marginals

        return work

    for pairs in (64, 4):
        potentials = torch.randn(pairs, 300, 300, 3, device="cuda")
        work = peer(lambda s: torch_struct.AlignmentCRF(s), potentials)
        took = run.time(f"{pairs} x 300 x 300", "alignment sums", "torch-struct", lambda: events(work, 3, 1))
        if took is not None:
            run.time(f"{pairs} x 300 x 300", "alignment sums", "torch-struct memory", lambda: peak(work), "MiB")
            break
        torch.cuda.empty_cache()
    for batch, T in ((64, 1000), (1, 100)):
        try:
            potentials = torch.randn(batch, T, D, K, K, device="cuda")
        except RuntimeError:
            continue
        work = peer(lambda s: torch_struct.SemiMarkovCRF(s), potentials)
        took = run.time(f"{batch} x {T} x 16 x 24", "segments sums", "torch-struct", lambda: events(work, 2, 1))
        if took is not None:
            run.time(f"{batch} x {T} x 16 x 24", "segments sums", "torch-struct memory", lambda: peak(work), "MiB")
            break
        del potentials
        torch.cuda.empty_cache()
