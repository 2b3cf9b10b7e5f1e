"""Why a plan is the way it is: what limits it, why other outer choices lose, and what another plan would cost."""
