"""The manifests of a cluster: every field is one of Kubernetes', and they say what the page says."""

from __future__ import annotations

import re

import pytest
import yaml


@pytest.fixture(scope="module")
def manifests(root):
    return list(yaml.safe_load_all((root / "book" / "cluster" / "grading.yaml").read_text()))


def kinds(manifests, kind):
    return {one["metadata"]["name"]: one for one in manifests if one["kind"] == kind}


def test_kubernetes_knows_every_field(manifests):
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed").validate
    assert len(manifests) == 6
    for manifest in manifests:
        validate(manifest, "1.31", strict=True)


def test_nobody_from_elsewhere_reaches_the_scheduler_and_a_worker_reaches_nothing_else(manifests):
    (policy,) = kinds(manifests, "NetworkPolicy").values()
    (service,) = kinds(manifests, "Service").values()
    assert policy["spec"]["podSelector"] == {} and set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    (rule,) = policy["spec"]["ingress"]
    (who,) = rule["from"]
    assert set(who) == {"podSelector"}, "of this namespace alone"
    assert service["spec"].get("type", "ClusterIP") == "ClusterIP" and not kinds(manifests, "Ingress")
    assert not any("ipBlock" in one for out in policy["spec"]["egress"] for one in out["to"])


def test_all_that_grade_have_the_same_certificates_and_no_account(manifests):
    pods = [one["spec"]["template"] for one in kinds(manifests, "Deployment").values()]
    assert len(pods) == 2
    labels = {re.sub("s$", "", name) for name in kinds(manifests, "Deployment")}
    assert {pod["metadata"]["labels"]["role"] for pod in pods} == labels
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts["certificates"] == "/etc/grading" and mounts["settings"] == "/etc/dask"
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert container["securityContext"]["runAsNonRoot"] and container["resources"]["limits"]["memory"]
    assert len({pod["spec"]["containers"][0]["image"] for pod in pods}) == 1, "the versions have to agree"


def test_dask_reads_the_settings_and_lets_in_nobody_without_a_certificate(manifests, tmp_path):
    dask = pytest.importorskip("dask", reason="Dask is not installed (the extra `cluster`)")
    from distributed.security import Security

    (settings,) = kinds(manifests, "ConfigMap").values()
    for name, text in settings["data"].items():
        (tmp_path / name).write_text(text)
    read = dask.config.collect([str(tmp_path)], env={})
    with dask.config.set(dask.config.merge(dask.config.config, read)):
        security = Security()
        assert security.require_encryption
        for role in ("scheduler", "worker", "client"):
            files = security.get_tls_config_for_role(role)
            assert (
                files["ca_file"] == files["cert"] == "/etc/grading/tls.crt" and files["key"] == "/etc/grading/tls.key"
            )
