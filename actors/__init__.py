"""Who acts: one module an actor, supervised in nurseries."""
