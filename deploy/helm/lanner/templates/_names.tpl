{{- /* What everything of a release is labelled with: DICT of root and part. */ -}}
{{- define "lanner.labels" -}}
{{ include "lanner.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
lanner/wire: {{ .root.Values.wire | quote }}
{{- end }}

{{- define "lanner.selector" -}}
app.kubernetes.io/name: lanner
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "lanner.image" -}}
{{- $tagged := printf "%s:%s" .Values.image.repository .Values.image.tag -}}
image: {{ include "lanner.byDigest" (dict "image" $tagged "digest" .Values.image.digest) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- /* DICT of an image with a tag, and the digest that takes the tag's place if it is not empty. */ -}}
{{- define "lanner.byDigest" -}}
{{- if .digest -}}
{{ printf "%s@%s" (regexReplaceAll ":[^:/@]+$" .image "") .digest | quote }}
{{- else -}}
{{ .image | quote }}
{{- end -}}
{{- end }}

{{- /* The argument that is a model: its name, its file, and the only commitment that is accepted. */ -}}
{{- define "lanner.model" -}}
{{- if not .commitment -}}
{{- fail (printf "server.models: %s has no commitment; give the 64 digits that `lanner inspect %s` prints" .name .file) -}}
{{- end -}}
{{ printf "%s=/models/%s@%s" .name .file .commitment | quote }}
{{- end }}

{{- /* Where a server's models come from; one source, or an error. */ -}}
{{- define "lanner.modelSource" -}}
{{- $from := .Values.server.modelSource -}}
{{- $given := list -}}
{{- range $kind := list "fetch" "claim" "secret" -}}
{{- if index $from $kind }}{{ $given = append $given $kind }}{{ end -}}
{{- end -}}
{{- if ne (len $given) 1 -}}
{{- fail (printf "server.modelSource has %d sources of models; give one of fetch, claim and secret, and make the others empty" (len $given)) -}}
{{- end -}}
{{- first $given -}}
{{- end }}

{{- /* What a pod of the account 10001 may: nothing but its own. */ -}}
{{- define "lanner.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "lanner.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- /* Replicas on nodes of their own, as far as there are enough. */ -}}
{{- define "lanner.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "lanner.selector" . | nindent 8 }}
{{- end }}
