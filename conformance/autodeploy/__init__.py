"""Tools around AutoDeploy: its passes one at a time, its graph dumps, fusion candidates, a review of a transform."""
