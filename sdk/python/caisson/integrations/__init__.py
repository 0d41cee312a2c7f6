"""Adapters for hosts that run programs elsewhere: each module is imported by its name, and imports its host.

Modules: deepagents, harbor, inspect_ai, langchain, nemo_gym, openai_agents, rllm, smolagents, verifiers.  Without a
client each uses the server of CAISSON_URL, or else the private daemon of this tree of processes.
"""
