"""`conformance doctor`: what can be observed here, and why not the rest."""

from __future__ import annotations

import json

import click

from conformance.report.document import console


@click.command("doctor")
@click.option("-b", "--backend", multiple=True, help="only these backends")
@click.option("--json", "as_json", is_flag=True, help="for machines")
def doctor(backend: tuple[str, ...], as_json: bool) -> None:
    """What can be observed here, per backend, target and stage, and why not the rest."""
    from conformance import backends
    from conformance.target import Target

    names = backend or [name for name in backends.names() if name != "eager"]
    found = {name: backends.get(name) for name in names}
    versions = {name: b.versions() for name, b in found.items()}
    reasons = {
        name: {
            target: {str(s): why for s, why in b.unavailable(Target.parse(target)).items()} for target in b.targets()
        }
        for name, b in found.items()
    }
    settings = {name: b.settings_changed() for name, b in found.items()}
    if as_json:
        click.echo(json.dumps({"versions": versions, "unavailable": reasons, "settings": settings}, indent=2))
        return
    from conformance.report.terminal import doctor_table

    console().print(doctor_table(reasons, versions))
    for name, changed in settings.items():
        if changed:
            click.echo(f"\nSettings of {name} that the suite changes:")
        for setting, why in changed.items():
            click.echo(f"  {setting}: {why}")


COMMANDS = [doctor]
