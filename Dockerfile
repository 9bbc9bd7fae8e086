# One image for all our services and commands: python -m services.api, python -m mizan migrate, …
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS packages
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
COPY requirements/service.lock /build/service.lock
# Compiled files are checked by hash, not by time: a copy to the next stage may change times.
RUN python3 -m venv /opt/mizan \
    && /opt/mizan/bin/python -m pip install --no-cache-dir --no-input --disable-pip-version-check --no-compile \
        --require-hashes --only-binary :all: -r /build/service.lock \
    && /opt/mizan/bin/python -m pip uninstall --quiet --yes pip \
    && /opt/mizan/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/mizan/lib \
    && printf '%s\n' '#!/opt/mizan/bin/python' 'from mizan.__main__ import main' 'main(prog_name="mizan")' \
        > /opt/mizan/bin/mizan \
    && chmod 755 /opt/mizan/bin/mizan
COPY . /app
# Readable for the account below, whatever the modes of the checkout are.
RUN rm -r /app/requirements /app/docs /app/*.md /app/clients/*/README.md \
    && chmod -R a+rX /app \
    && /opt/mizan/bin/python -m compileall -q --invalidation-mode unchecked-hash /app

FROM ${PYTHON_IMAGE} AS documentation
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
COPY requirements/documentation.lock /build/documentation.lock
RUN python3 -m venv /opt/documentation \
    && /opt/documentation/bin/python -m pip install --no-cache-dir --no-input --disable-pip-version-check \
        --require-hashes --only-binary :all: -r /build/documentation.lock
COPY . /app
RUN /opt/documentation/bin/python /app/docs/site/build.py /site && chmod -R a+rX /site

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="Mizan" \
    org.opencontainers.image.description="Payments in Libyan dinar: payment intents, hosted checkout, signed webhooks."
# A volume that is mounted here for the first time gets this owner, too.
RUN groupadd --system --gid 10001 mizan \
    && useradd --system --uid 10001 --gid mizan --home-dir /tmp --no-create-home --shell /usr/sbin/nologin mizan \
    && for place in secrets sandbox shop demo proxy services/api services/checkout services/checkout-verifier \
        services/dashboard services/webhooks services/scheduler services/monitor services/cli services/migrate \
        services/roles services/topics services/sandbox services/postgres services/kafka services/grafana; do \
        mkdir -p "/var/lib/mizan/$place" && chown mizan:mizan "/var/lib/mizan/$place" || exit 1; done
COPY --from=packages /opt/mizan /opt/mizan
COPY --from=packages /app /app
COPY --from=documentation /site /app/.site
WORKDIR /app
ENV PATH=/opt/mizan/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/tmp HTTP_HOST=0.0.0.0 HTTP_PORT=8000
USER 10001:10001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=10s --start-period=180s --retries=3 \
    CMD ["python", "-I", "-S", "/app/deploy/healthcheck.py"]
CMD ["mizan", "--help"]
