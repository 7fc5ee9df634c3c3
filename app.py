"""The application: ``create_app`` joins settings, store, web and commands."""

import logging
import signal

import click
from flask import Flask
from flask.helpers import get_debug_flag
from werkzeug.serving import is_running_from_reloader

from store import cli, monitoring
from store.files import Catalogue, DataDirectoryError
from store.history import HistoryError
from store.search.meaning import Meaning
from store.settings import Settings, SettingsError
from store.store import Store, Watcher
from store.web import hosts, service

log = logging.getLogger(__name__)


def create_app(settings: Settings | None = None) -> Flask:
    """Return the service over one data directory; unless given, settings are the environment's.

    Raises:
        click.ClickException: a setting is wrong or there is no data directory to serve; the
            ``flask`` command prints its sentence and ends.
    """
    settings = settings or _settings()
    run = _run_context()
    app = service.Service(__name__, static_folder=None)
    reached_at = _reached_at(settings, run)

    def base_url(catalogue: Catalogue) -> str:
        return settings.address(catalogue.site.base_url) or reached_at

    store, meaning = Store(settings.data_dir), Meaning(settings.data_dir)
    app.extensions["settings"] = settings
    app.extensions["store"] = store
    app.extensions["meaning"] = meaning
    service.register(app, store, meaning, base_url, settings.hosts)
    cli.register(app)
    # A command reads the data itself, as far as it needs it.
    if run or _is_server(settings):
        _open(store, settings)
        if not settings.address(store.snapshot.catalogue.site.base_url):
            log.warning("BASE_URL is not set: published addresses begin with %s", reached_at)
        if run:
            cli.say_data(app)
        else:
            log.info("Data: %s", settings.data_dir.absolute())
        app.extensions["watcher"] = watcher = Watcher(store)
        # Servers other than ours have no hook that could start it before the first request.
        app.before_request(watcher.ensure_running)
        if run and _is_serving(run):
            _begin(app, settings)
    return app


def _begin(app: Flask, settings: Settings) -> None:
    """Start watcher, schedule and monitoring; under gunicorn post_worker_init does it."""
    app.extensions["watcher"].ensure_running()
    if settings.poll_enabled:
        from store.polls.schedule import begin  # noqa: PLC0415 - most servers do not poll

        begin(app.extensions, signal.SIGTERM, signal.SIGINT)
    monitoring.begin(app)


def _settings() -> Settings:
    try:
        return Settings.from_env()
    except SettingsError as error:
        raise click.ClickException(str(error)) from None


def _open(store: Store, settings: Settings) -> None:
    """Read the data now, so that a mistake shows at the start and no request waits."""
    try:
        settings.check_schedule()
        store.reload()
    except (DataDirectoryError, HistoryError, SettingsError) as error:
        raise click.ClickException(str(error)) from None


def _run_context() -> click.Context | None:
    """Return the context of ``flask run``; ``None`` in a command, gunicorn or a test's client."""
    context = click.get_current_context(silent=True)
    return context if context and context.info_name == "run" else None


def _is_server(settings: Settings) -> bool:
    """Return whether this is gunicorn or a test's client.

    A command is not, nor is a shell that asks what could be typed.
    """
    is_completion = {"_FLASK_COMPLETE", "_CONSENSUS_COMPLETE"} & settings.environ.keys()
    return click.get_current_context(silent=True) is None and not is_completion


def _is_serving(run: click.Context) -> bool:
    """Return whether this process of ``flask run`` serves, and is not its reloader's parent."""
    reload = run.params.get("reload")
    # As `flask run` decides it when neither --reload nor --no-reload is given.
    reloads = get_debug_flag() if reload is None else reload
    return not reloads or is_running_from_reloader()


def _reached_at(settings: Settings, run: click.Context | None) -> str:
    """Return where the server listens, as far as it can be known from here."""
    if run:
        scheme = "https" if run.params.get("cert") else "http"
        return hosts.address(run.params["host"], run.params["port"], scheme)
    return settings.listening_at or "http://127.0.0.1:8000"
