"""What kpg finds on this machine: `kpg doctor`."""
