#!/usr/bin/env python3
"""A Llama of transformers with random weights that decodes, as a load: llama.py decode|calibrate [OPTIONS].

A request is --tokens tokens after a prompt of one, in half precision with a static cache: for each a CUDA graph of the
whole step, the choice of the next token in it, and that token back on the host before the next step begins, as a
server that streams its answers needs it.  Before it says `ready` the program compares a step of the graph with the
same step outside it.
"""
import inspect
import sys

import torch
import transformers

import program

CONTEXT = 256


def new_cache(config):
    """The arguments of StaticCache differ between versions."""
    known = inspect.signature(transformers.StaticCache.__init__).parameters
    wanted = {'config': config, 'max_cache_len': CONTEXT, 'device': 'cuda', 'dtype': torch.half}
    wanted['max_batch_size' if 'max_batch_size' in known else 'batch_size'] = 1
    return transformers.StaticCache(**{k: v for k, v in wanted.items() if k in known})


class Decoder:
    def __init__(self):
        config = transformers.LlamaConfig(
            hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16,
            num_key_value_heads=16, vocab_size=32000, max_position_embeddings=CONTEXT)
        self.model = transformers.LlamaForCausalLM(config).half().cuda().eval()
        self.cache, self.stream = new_cache(config), torch.cuda.Stream()
        self.token = torch.zeros(1, 1, dtype=torch.long, device='cuda')
        self.position = torch.zeros(1, dtype=torch.long, device='cuda')
        self.places = torch.arange(CONTEXT, device='cuda')
        self.host = torch.zeros(1, 1, dtype=torch.long).pin_memory()
        torch.cuda.synchronize()  # the stream does not wait for the one that filled these
        with torch.no_grad(), torch.cuda.stream(self.stream):
            self.capture()

    def step(self):
        seen = (self.places <= self.position).view(1, 1, 1, CONTEXT)
        mask = torch.zeros(1, 1, 1, CONTEXT, dtype=torch.half, device='cuda').masked_fill(~seen, -65504)
        logits = self.model(self.token, attention_mask=mask, position_ids=self.position.view(1, 1),
                            past_key_values=self.cache, cache_position=self.position, use_cache=True).logits
        self.token.copy_(logits[:, -1].argmax(-1, keepdim=True))
        self.position.add_(1)
        return logits

    def restart(self, token):
        """Newer versions count the tokens of a cache in it."""
        for layer in getattr(self.cache, 'layers', []):
            length = getattr(layer, 'cumulative_length', None)
            if isinstance(length, torch.Tensor):
                length.zero_()
        self.token.fill_(token)
        self.position.zero_()

    def capture(self):
        for _ in range(3):
            self.restart(7)
            expected = [self.step().clone() for _ in range(3)][-1]
        self.stream.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            logits = self.step()
        self.restart(7)
        for _ in range(3):
            self.graph.replay()
        self.stream.synchronize()
        if not torch.allclose(logits.float(), expected.float(), atol=0.05):
            sys.exit('llama.py: the graph and the model outside it differ in this version of transformers')

    def request(self, tokens):
        with torch.cuda.stream(self.stream):
            self.restart(7)
            for _ in range(tokens):
                self.graph.replay()
                self.host.copy_(self.token, non_blocking=True)
                self.stream.synchronize()


def main():
    args = program.options(['decode', 'calibrate'], tokens=(32, 'tokens a request'))
    if not 0 < args.tokens <= CONTEXT:
        sys.exit('llama.py: --tokens is from 1 to %d' % CONTEXT)
    torch.manual_seed(args.seed)
    decoder = Decoder()
    facts = {'torch': torch.__version__, 'transformers': transformers.__version__, 'tokens': args.tokens}
    for _ in range(5):
        decoder.request(args.tokens)
    if args.role == 'decode':
        program.serve(args, lambda: decoder.request(args.tokens), **facts)
    else:
        program.calibrate(lambda: decoder.request(args.tokens), **facts)


if __name__ == '__main__':
    main()
